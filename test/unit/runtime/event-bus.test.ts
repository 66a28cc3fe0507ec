import { expect, test } from "vitest";
import { Events } from "../../../src/runtime/event-bus.ts";

interface Told {
  readonly added: [name: string, count: number];
  readonly idle: [];
}

test("calls the listeners of an event at once, in the order in which they were added", () => {
  const events = new Events<Told>();
  const heard: string[] = [];
  events.on("added", (name, count) => heard.push(`first ${name} ${count}`));
  events.on("idle", () => heard.push("idle"));
  events.on("added", (name) => heard.push(`second ${name}`));
  events.emit("added", "a", 2);
  expect(heard).toEqual(["first a 2", "second a"]);
});

test("gives an error of a listener to the emitter, and tells no later listener", () => {
  const events = new Events<Told>();
  let heard = 0;
  events.on("idle", () => {
    throw new Error("no");
  });
  events.on("idle", () => {
    heard += 1;
  });
  expect(() => events.emit("idle")).toThrow("no");
  expect(heard).toBe(0);
});

test("tells nobody of an event without listeners", () => {
  expect(() => new Events<Told>().emit("idle")).not.toThrow();
});

test("calls a listener of any once for events that come together, and again for later ones", async () => {
  const events = new Events<Told>();
  let heard = 0;
  events.onAny(["added", "idle"], () => {
    heard += 1;
  });
  events.emit("added", "a", 1);
  events.emit("added", "b", 2);
  events.emit("idle");
  expect(heard).toBe(0);
  await Promise.resolve();
  expect(heard).toBe(1);
  events.emit("idle");
  await Promise.resolve();
  expect(heard).toBe(2);
});
