import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { acquireFirst, acquireReserved, type Lock, reserve } from "../../support/clusters/lock.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "legation-lock-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const at = (name: string): string => join(folder, name);
const acquire = (...names: string[]): Promise<Lock> => acquireFirst(names.map(at), () => {});
const idOfTheDead = (): string => `${spawnSync(process.execPath, ["--version"]).pid}\n`;

test("gives a lock to the first in line, even before one that comes when it is free", async () => {
  const order: number[] = [];
  const hold = async (number: number): Promise<void> => {
    const { release } = await acquire("one");
    order.push(number);
    release();
  };
  const { release } = await acquire("one");
  const waiting = [hold(1), hold(2)];
  release();
  await Promise.all([...waiting, hold(3)]);
  expect(order).toEqual([1, 2, 3]);
});

test("puts a process that waits for any of several locks behind earlier ones at each of them", async () => {
  const [one, two] = await Promise.all([acquire("one"), acquire("two")]);
  const first = acquire("two");
  two.release();
  const either = acquire("one", "two");
  expect((await first).path).toBe(at("two"));
  one.release();
  expect((await either).path).toBe(at("one"));
  // The process of `either` no longer waits for the other lock.
  (await first).release();
  expect((await acquire("two")).path).toBe(at("two"));
});

test("keeps a reserved lock for its owner", async () => {
  reserve(at("one"));
  const either = acquire("one", "two");
  const only = acquire("one");
  expect((await either).path).toBe(at("two"));
  const reserved = acquireReserved(at("one"));
  expect(reserved?.path).toBe(at("one"));
  expect(acquireReserved(at("one"))).toBeUndefined();
  reserved?.release();
  expect((await only).path).toBe(at("one"));
});

test("frees a lock and a place in line when their process has died", async () => {
  writeFileSync(at("one"), idOfTheDead());
  mkdirSync(at("one.queue"));
  writeFileSync(join(at("one.queue"), "7"), idOfTheDead());
  expect((await acquire("one")).path).toBe(at("one"));
});
