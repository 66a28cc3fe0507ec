import { expect, test } from "vitest";
import { SupportedFields } from "../../../../../src/controllers/delegation/actions/supported-fields.ts";
import { member } from "../../../../support/builders/member.ts";
import { FakeClock } from "../../../../support/clock/fake-clock.ts";
import { quietClient } from "../../quiet-client.ts";

test("knows for ten minutes, and for one version, which fields a member keeps", async () => {
  const clock = new FakeClock();
  const fields = new SupportedFields(clock);
  const running = (version: string) => member("west", quietClient([]), { probed: { reachable: true, version } });
  const paths = ["containers[app].resizePolicy", "hostUsers"];
  expect(fields.unknown(running("v1.36.0"), paths)).toEqual(paths);
  fields.learn(running("v1.36.0"), ["containers[app].resizePolicy"]);
  expect(fields.unknown(running("v1.36.0"), ["containers[other].resizePolicy", "hostUsers"])).toEqual(["hostUsers"]);
  expect(fields.unknown(running("v1.36.1"), paths)).toEqual(paths);
  await clock.advance(600_000);
  expect(fields.unknown(running("v1.36.0"), paths)).toEqual(paths);
});
