"""Reads the file of a systemd unit."""

import shlex


class Unit:
    """The settings of a unit's file, by name. A line `NAME=` removes NAME's earlier values."""

    def __init__(self, path):
        self.path = path
        self._settings = {}
        for line in path.read_text().splitlines():
            name, is_setting, value = line.partition("=")
            if line.startswith(("#", "[")) or not is_setting:
                continue
            values = self._settings.setdefault(name, [])
            values.append(value) if value else values.clear()

    def all(self, name):
        return self._settings.get(name, [])

    def one(self, name):
        (value,) = self.all(name)
        return value

    def seconds(self, name):
        return int(self.one(name).removesuffix("s"))

    def command(self, flags):
        """The words of ExecStart, with `flags` in place of the two variables at its end."""
        words = shlex.split(self.one("ExecStart"))
        variables = ["$SYSTOLE_TLS_FLAGS", "$SYSTOLE_FLAGS"]
        if words[-2:] != variables:
            raise ValueError(f"ExecStart ends with {words[-2:]}, want {variables}")
        return words[:-2] + shlex.split(flags)

    def environment(self):
        return dict(word.split("=", 1) for e in self.all("Environment") for word in shlex.split(e))
