"""Answers the requests of one client by what the server has."""
