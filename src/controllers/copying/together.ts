import { leastReady, type Needs, readinessIn } from "../delegation/model/needs.ts";
import type { Dependencies } from "../delegation/options.ts";

/** What several controllers make for pods, as one: a pod has what it needs when each of them says so. */
export function together(all: readonly Dependencies[]): Dependencies {
  return {
    onProxy: (event) => {
      for (const one of all) one.onProxy(event);
    },
    needs: (proxy) => merged(all.flatMap((one) => one.needs(proxy) ?? [])),
    prepare: (key, proxyUid, member) => all.map((one) => one.prepare(key, proxyUid, member)).every(Boolean),
    onMissing: (delegate, member, kind) => all.map((one) => one.onMissing?.(delegate, member, kind)).includes(true),
  };
}

function merged(needs: readonly Needs[]): Needs | undefined {
  const [only] = needs;
  if (needs.length < 2) return only;
  const unmet = needs.find(({ state }) => state === "missing") ?? needs.find(({ state }) => state === "awaited");
  if (unmet !== undefined) return unmet;
  return {
    state: "there",
    in: (member) => leastReady(needs.map((one) => readinessIn(one, member))),
  };
}
