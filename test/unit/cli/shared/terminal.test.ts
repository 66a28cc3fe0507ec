import { expect, test } from "vitest";
import { Terminal } from "../../../../src/cli/shared/terminal.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

function terminalOf({
  isTTY = true,
  columns = 80,
  env = {},
}: {
  isTTY?: boolean;
  columns?: number;
  env?: Record<string, string>;
} = {}) {
  const clock = new FakeClock();
  const written: string[] = [];
  const stream = (name: string) => ({
    isTTY,
    columns,
    write: (text: string | Buffer) => written.push(`${name}:${text}`),
  });
  return { clock, written, terminal: new Terminal(stream("out"), stream("err"), env, clock) };
}

const ERASE = "\r\u001b[2K";

test("says what a command works at from its second second on, and leaves nothing of it", async () => {
  const { clock, written, terminal } = terminalOf();
  await terminal.working("joining", async () => {
    await clock.advance(900);
    expect(written).toEqual([]);
    await clock.advance(100);
    expect(written).toEqual([`err:${ERASE}joining, 1s`]);
    terminal.step("waiting until west is Ready");
    await clock.advance(1_000);
    expect(written.at(-1)).toBe(`err:${ERASE}waiting until west is Ready, 2s`);
  });
  expect(written.at(-1)).toBe(`err:${ERASE}`);
  const before = written.length;
  await clock.advance(5_000);
  expect(written).toHaveLength(before);
});

test("takes the line away for other progress, and for good with the first result", async () => {
  const { clock, written, terminal } = terminalOf();
  await terminal.working("joining", async () => {
    await clock.advance(1_000);
    terminal.progress("Secret stored");
    expect(written.slice(-2)).toEqual([`err:${ERASE}`, "err:Secret stored\n"]);
    await clock.advance(1_000);
    expect(written.at(-1)).toBe(`err:${ERASE}joining, 2s`);
    terminal.print("joined");
    expect(written.slice(-2)).toEqual([`err:${ERASE}`, "out:joined\n"]);
    await clock.advance(3_000);
    expect(written.at(-1)).toBe("out:joined\n");
  });
});

test("shortens the line to the terminal's width", async () => {
  const { clock, written, terminal } = terminalOf({ columns: 10 });
  await terminal.working("taking the member out", () => clock.advance(1_000));
  expect(written[0]).toBe(`err:${ERASE}taking t…`);
});

test("takes a terminal that does not tell its width for one of 80 columns", async () => {
  const { clock, written, terminal } = terminalOf({ columns: 0 });
  await terminal.working("joining", () => clock.advance(1_000));
  expect(written[0]).toBe(`err:${ERASE}joining, 1s`);
});

test.each([
  ["a pipe", { isTTY: false }],
  ["a dumb terminal", { env: { TERM: "dumb" } }],
])("shows no line on %s", async (_, options) => {
  const { clock, written, terminal } = terminalOf(options);
  await terminal.working("joining", () => clock.advance(5_000));
  expect(written).toEqual([]);
});

test("knows a width on a terminal only", () => {
  expect(terminalOf({ columns: 40 }).terminal.width).toBe(40);
  expect(terminalOf({ isTTY: false }).terminal.width).toBe(Number.POSITIVE_INFINITY);
  expect(terminalOf({ columns: 0 }).terminal.width).toBe(Number.POSITIVE_INFINITY);
  const { terminal } = terminalOf({ columns: 40 });
  terminal.widen();
  expect(terminal.width).toBe(Number.POSITIVE_INFINITY);
});

test.each([
  ["60", true, 60],
  ["60", false, Number.POSITIVE_INFINITY],
  ["", true, 80],
  ["wide", true, 80],
  ["-1", true, 80],
])("takes COLUMNS=%j on a terminal (%s) for the width %d", (COLUMNS, isTTY, width) => {
  expect(terminalOf({ isTTY, env: { COLUMNS } }).terminal.width).toBe(width);
});
