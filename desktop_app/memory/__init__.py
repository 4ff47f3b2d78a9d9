"""What a training needs: the allocator replica, the trace that feeds it, and the estimate made from both."""
