"""What the command writes to a terminal, and that it does not elsewhere."""

import os
import pty
import subprocess
import unittest

from command import COMMAND, CommandTest


class Terminal(CommandTest):
    def stderr_on_terminal(self, *arguments, **variables):
        """Everything that reached stderr while it was a terminal."""
        leader, follower = pty.openpty()
        environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | variables
        process = subprocess.Popen([COMMAND, *arguments], stdout=subprocess.DEVNULL,
                                   stderr=follower, env=environment)
        os.close(follower)
        text = b""
        while True:
            try:
                piece = os.read(leader, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            text += piece
        os.close(leader)
        process.wait(timeout=60)
        return text.decode()

    def test_errors_are_colored_on_a_terminal_unless_no_color_is_set(self):
        self.assertIn("\033[1;31merror:", self.stderr_on_terminal("inspect", self.path("none")))
        plain = self.stderr_on_terminal("inspect", self.path("none"), NO_COLOR="1")
        self.assertNotIn("\033", plain)
        self.assertNotIn("\033", self.run_command("inspect", self.path("none")).stderr)

    def test_progress_rewrites_its_line_on_a_terminal_and_is_silent_elsewhere(self):
        arguments = ["pack", "-", self.path("out"), "--from", "synthetic", "--shape", "3x64x64",
                     "--count", "3000", "--encode", "png", "--force"]
        shown = self.stderr_on_terminal(*arguments)
        self.assertIn("\rpacking ", shown)
        self.assertIn("of 3,000", shown)
        self.assertTrue(shown.endswith("\r\033[K"))
        short = ["20" if a == "3000" else a for a in arguments]
        self.assertEqual(self.run_command(*short).stderr, "")


if __name__ == "__main__":
    unittest.main()
