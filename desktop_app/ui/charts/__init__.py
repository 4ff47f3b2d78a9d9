"""The chart stack: loss, memory and the card's sensors on one time axis. Imports pyqtgraph; import it late."""
