import { expect, test } from "vitest";
import { quotaWish } from "../../../../src/controllers/queues/quota-wishes.ts";

test.each([
  { written: {}, wish: undefined },
  { written: { "legation.dev/quota": "follow" }, wish: { floor: {} } },
  {
    written: { "legation.dev/quota": "follow", "legation.dev/quota-share": "12.5%" },
    wish: { share: 0.125, floor: {} },
  },
  {
    written: { "legation.dev/quota": "follow", "legation.dev/quota-floor": "cpu=500m, memory=1Ki" },
    wish: { floor: { cpu: 0.5, memory: 1024 } },
  },
  { written: { "legation.dev/quota-share": "80%" }, wish: undefined },
])("$written asks for $wish", ({ written, wish }) => {
  expect(quotaWish({ annotations: written })).toEqual(wish);
});

test.each([
  ["legation.dev/quota", "fixed", 'write "follow", or remove it'],
  ["legation.dev/quota-share", "101%", 'write a percentage from 0% to 100%, such as "80%"'],
  ["legation.dev/quota-share", "0.8", 'write a percentage from 0% to 100%, such as "80%"'],
  ["legation.dev/quota-floor", "cpu", 'write amounts by resource, such as "cpu=8,memory=32Gi"'],
  ["legation.dev/quota-floor", "cpu=-1", 'write amounts by resource, such as "cpu=8,memory=32Gi"'],
  ["legation.dev/quota-floor", "cpu=1=2", 'write amounts by resource, such as "cpu=8,memory=32Gi"'],
])("%s: %s is refused with a remedy", (annotation, value, remedy) => {
  const annotations = { "legation.dev/quota": "follow", [annotation]: value };
  expect(quotaWish({ annotations })).toEqual({ problem: `the annotation ${annotation} is "${value}"; ${remedy}` });
});
