"""Every drafting system on one page."""
