"""Words: the only place where codes and parameters from below become text. Every function follows the language."""
