import { expect, test } from "vitest";
import type { Toleration } from "../../../src/api/kubernetes.ts";
import { toDelegate } from "../../../src/pods/delegate.ts";
import { withEndlessTolerations } from "../../../src/pods/failover.ts";
import { forwardPatches } from "../../../src/pods/forward.ts";
import { pod, proxyPod } from "../../support/builders/pod.ts";

const lost = (state: string, tolerationSeconds?: number): Toleration => ({
  key: `node.kubernetes.io/${state}`,
  operator: "Exists",
  effect: "NoExecute",
  ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }),
});
const own: Toleration = { key: "gpu", operator: "Exists" };
const never = { annotations: { "legation.dev/failover": "never" } };

test.each<[string, Toleration[] | undefined, Toleration[]]>([
  ["none", undefined, [lost("not-ready"), lost("unreachable")]],
  [
    "the default ones",
    [own, lost("not-ready", 300), lost("unreachable", 300)],
    [own, lost("not-ready"), lost("unreachable")],
  ],
  ["shorter ones", [lost("unreachable", 5), own], [own, lost("not-ready"), lost("unreachable")]],
  ["one without an end", [lost("unreachable"), own], [lost("unreachable"), own, lost("not-ready")]],
])("tolerates a lost member without end, with %s", (_, tolerations, expected) => {
  const once = withEndlessTolerations(proxyPod({ spec: tolerations === undefined ? {} : { tolerations } }));
  expect(once.spec?.tolerations).toEqual(expected);
  expect(withEndlessTolerations(once)).toEqual(once);
});

test("lets the delegate tolerate a lost node like any pod there", () => {
  const tolerations = [own, lost("not-ready"), lost("unreachable")];
  expect(toDelegate(proxyPod({ metadata: never, spec: { tolerations } }), { id: "h", name: "h" }).spec).toMatchObject({
    tolerations: [own],
  });
});

test("keeps the author's own tolerations on both sides without the annotation", () => {
  const tolerations = [lost("not-ready"), lost("unreachable", 5)];
  expect(toDelegate(proxyPod({ spec: { tolerations } }), { id: "h", name: "h" }).spec).toMatchObject({ tolerations });
});

test("leaves the delegate unchanged if the annotation is removed", () => {
  const tolerations = [own, lost("not-ready"), lost("unreachable")];
  const { metadata = {}, spec = { containers: [] } } = toDelegate(
    proxyPod({ metadata: never, spec: { tolerations } }),
    {
      id: "h",
      name: "h",
    },
  );
  const theirs = [own, lost("not-ready", 300), lost("unreachable", 300)];
  const delegate = pod({ uid: "delegate-uid", metadata, spec: { ...spec, tolerations: theirs } });
  const specs = (added: Toleration[]) =>
    forwardPatches(proxyPod({ spec: { tolerations: [...tolerations, ...added] } }), delegate).flatMap(
      ({ body }) => body.spec ?? [],
    );
  expect(specs([])).toEqual([]);
  const spot: Toleration = { key: "spot", operator: "Exists" };
  expect(specs([spot])).toEqual([{ tolerations: [...theirs, spot] }]);
});
