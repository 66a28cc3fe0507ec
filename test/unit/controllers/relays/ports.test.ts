import fc from "fast-check";
import { expect, test } from "vitest";
import { objectKey } from "../../../../src/api/kubernetes.ts";
import { RELAY_PORTS } from "../../../../src/api/relay.ts";
import { PortRecord } from "../../../../src/controllers/relays/ports.ts";

const key = (name: string): ReturnType<typeof objectKey> => objectKey({ namespace: "team", name });

test("gives a Service the same port again when its slices were deleted and the process is another", () => {
  const ports = (): unknown => new PortRecord().assign(key("web"), ["http", "https"], new Map());
  expect(ports()).toEqual(ports());
});

test("keeps recorded ports, and gives another to a Service that comes before the one that has it", () => {
  const wish = new PortRecord().assign(key("web"), [""], new Map()).get("") ?? 0;
  const record = new PortRecord();
  record.remember(key("other"), new Map([["", wish]]));
  expect(record.assign(key("web"), [""], new Map()).get("")).toBe(wish + 1);
  expect(record.assign(key("other"), [""], new Map([["", wish]])).get("")).toBe(wish);
});

test("takes no recorded port outside of the relay's range", () => {
  const given = new PortRecord().assign(key("web"), [""], new Map([["", 22]])).get("") ?? 0;
  expect(given).toBeGreaterThanOrEqual(RELAY_PORTS.first);
});

test("keeps the ports of names that stay, and frees those of names that go", () => {
  const record = new PortRecord();
  const before = record.assign(key("web"), ["a", "b"], new Map());
  const after = record.assign(key("web"), ["b", "c"], before);
  expect(after.get("b")).toBe(before.get("b"));
  record.release(key("web"));
  expect(record.assign(key("web"), ["a"], new Map()).get("a")).toBe(before.get("a"));
});

test("never gives one port to two Services", () => {
  const services = fc.array(
    fc.record({
      name: fc.stringMatching(/^[a-c]$/),
      ports: fc.uniqueArray(fc.stringMatching(/^[x-z]$/)),
      recorded: fc.nat(3),
    }),
  );
  fc.assert(
    fc.property(services, (steps) => {
      const record = new PortRecord();
      const given = new Map<string, readonly number[]>();
      for (const { name, ports, recorded } of steps) {
        const written = new Map(ports.map((port) => [port, RELAY_PORTS.first + recorded]));
        given.set(name, [...record.assign(key(name), ports, written).values()]);
        const all = [...given.values()].flat();
        expect(new Set(all).size).toBe(all.length);
      }
    }),
  );
});

test("gives none when all are taken", () => {
  const record = new PortRecord();
  const names = Array.from({ length: RELAY_PORTS.count }, (_, index) => String(index));
  expect(record.assign(key("wide"), names, new Map()).size).toBe(RELAY_PORTS.count);
  expect(record.assign(key("web"), [""], new Map()).size).toBe(0);
});
