"""Thin command lines over the library; `worldmodel <command>` offers them to those who installed a wheel."""
