"""Commands that ask whether pods would fit."""
