"""Runs a command in a pseudo-terminal and writes what a user sees at the end as an SVG.

    python docs/images/record.py docs/images/train.svg --title "yolo train --data shapes" \
        -- yolo train --data shapes

The text is the program's own output: only long runs of lines that `--skip FIRST LAST` names (counted
from 1) are replaced by an ellipsis. Colors and redrawn progress lines are interpreted, so a live view
shows its last state. Needs Python alone; Linux or macOS.
"""
import argparse
import fcntl
import html
import os
import pty
import re
import struct
import sys
import termios

COLUMNS, ROWS = 100, 60
FOREGROUND, BACKGROUND = "#d4d4d4", "#1e1e1e"
COLORS = ["#808080", "#f14c4c", "#23d18b", "#e5c07b", "#61afef", "#d670d6", "#29b8db", "#e5e5e5"]
CHARACTER_WIDTH, LINE_HEIGHT, MARGIN = 8.4, 19, 16
TOKEN = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b\][^\x07]*\x07|\x1b.|([^\x1b])", re.DOTALL)


def run(command):
    """The bytes that `command` writes to its terminal, and its exit status."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS=str(COLUMNS))
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    output = []
    while True:
        try:
            block = os.read(terminal, 65536)
        except OSError:  # how Linux reports that the other end is closed
            break
        if not block:
            break
        output.append(block)
    return b"".join(output), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def screen(output):
    """The lines on the terminal at the end; a line is a list of (character, style)."""
    lines, row, column, style = [[]], 0, 0, (None, False, False)
    for match in TOKEN.finditer(output.decode(errors="replace")):
        arguments, final, character = match.groups()
        if final:
            numbers = [int(number) for number in re.findall(r"\d+", arguments)]
            count = numbers[0] if numbers else 1
            if final == "m":
                style = restyled(style, numbers or [0])
            elif final == "A":
                row = max(row - count, 0)
            elif final == "B":
                row += count
            elif final == "C":
                column += count
            elif final == "D":
                column = max(column - count, 0)
            elif final == "G":
                column = count - 1
            elif final == "K" and row < len(lines):
                lines[row] = [] if numbers[:1] == [2] else lines[row][:column]
            elif final == "J":
                lines[row] = lines[row][:column]
                del lines[row + 1:]
        elif character == "\n":
            row += 1
        elif character == "\r":
            column = 0
        elif character and ord(character) >= 32:
            while len(lines) <= row:
                lines.append([])
            lines[row] += [(" ", style)] * (column - len(lines[row]))
            lines[row][column:column + 1] = [(character, style)]
            column += 1
        while len(lines) <= row:
            lines.append([])
    for line in lines:
        while line and line[-1][0] == " ":
            line.pop()
    while lines and not lines[-1]:
        lines.pop()
    return lines


def restyled(style, numbers):
    color, bold, dim = style
    for number in numbers:
        if number == 0:
            color, bold, dim = None, False, False
        elif number == 1:
            bold = True
        elif number == 2:
            dim = True
        elif number == 22:
            bold, dim = False, False
        elif 30 <= number <= 37:
            color = COLORS[number - 30]
        elif 90 <= number <= 97:
            color = COLORS[number - 90]
        elif number == 39:
            color = None
    return color, bold, dim


def spans(line):
    """SVG of one line: a tspan per run of characters with one style."""
    result, start = [], 0
    for end in range(1, len(line) + 1):
        if end < len(line) and line[end][1] == line[start][1]:
            continue
        color, bold, dim = line[start][1]
        attributes = f' fill="{color}"' if color else ""
        attributes += ' font-weight="bold"' if bold else ""
        attributes += ' opacity="0.65"' if dim else ""
        text = html.escape("".join(character for character, _ in line[start:end]), quote=False)
        result.append(f"<tspan{attributes}>{text}</tspan>" if attributes else text)
        start = end
    return "".join(result)


def svg(title, lines):
    height = (len(lines) + 1) * LINE_HEIGHT + 2 * MARGIN + 26
    width = COLUMNS * CHARACTER_WIDTH + 2 * MARGIN
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">',
        f"<title>{html.escape(title)}</title>",
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
    ]
    for index, color in enumerate(["#ff5f56", "#ffbd2e", "#27c93f"]):
        rows.append(f'<circle cx="{22 + 20 * index}" cy="20" r="6" fill="{color}"/>')
    prompt = [("$ ", ("#23d18b", True, False))] + [(title, (None, True, False))]
    for index, line in enumerate([prompt] + lines):
        y = MARGIN + 26 + (index + 0.75) * LINE_HEIGHT
        if line:
            rows.append(f'<text x="{MARGIN}" y="{y:.1f}" fill="{FOREGROUND}" xml:space="preserve">{spans(line)}</text>')
    return "\n".join(rows + ["</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", help="the SVG to write")
    parser.add_argument("--title", required=True, help="the command as the picture shows it")
    parser.add_argument("--skip", nargs=2, type=int, action="append", default=[], metavar=("FIRST", "LAST"))
    parser.add_argument("--replace", nargs=2, action="append", default=[], metavar=("TEXT", "WITH"),
                        help="for the folder that a run was recorded in")
    parser.add_argument("--raw", help="keep the terminal's bytes here; if the file exists, replay it and run nothing")
    before, after = sys.argv[1:], []
    if "--" in before:
        split = before.index("--")
        before, after = before[:split], before[split + 1:]
    arguments = parser.parse_args(before)
    if arguments.raw and os.path.exists(arguments.raw):
        with open(arguments.raw, "rb") as file:
            output = file.read()
    else:
        output, status = run(after)
        if status != 0:
            sys.exit(f"the command exited with {status}:\n{output.decode(errors='replace')[-2000:]}")
        if arguments.raw:
            with open(arguments.raw, "wb") as file:
                file.write(output)
    for text, replacement in arguments.replace:
        output = output.replace(text.encode(), replacement.encode())
    lines = screen(output)
    for first, last in sorted(arguments.skip, reverse=True):
        lines[first - 1:last] = [[("  ⋮", (None, False, True))]]
    with open(arguments.output, "w") as file:
        file.write(svg(arguments.title, lines))
    for number, line in enumerate(lines, 1):
        print(f"{number:3} {''.join(character for character, _ in line)}", file=sys.stderr)


if __name__ == "__main__":
    main()
