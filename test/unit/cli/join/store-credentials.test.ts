import { expect, test } from "vitest";
import type { Secret, Stored } from "../../../../src/api/kubernetes.ts";
import { storeCredentials } from "../../../../src/cli/join/credentials.ts";
import { UndoStack } from "../../../../src/cli/join/undo.ts";
import { isSameMember } from "../../../../src/cli/join/validate.ts";
import { KubeError } from "../../../../src/kube/errors.ts";
import { secrets } from "../../../../src/kube/resources.ts";
import { fakeClient } from "../client.ts";
import { MemoryCluster } from "./memory-cluster.ts";

const { signal } = new AbortController();
const secret = (kubeconfig: string): Stored<Secret> => ({
  metadata: { name: "member-west", namespace: "legation-system", uid: "u", resourceVersion: "1" },
  data: { kubeconfig: btoa(kubeconfig) },
});

/** Stores credentials on a host that has these, and takes them back after the host got others. */
async function storeAndUndo({
  before,
  meanwhile,
}: {
  before?: string;
  meanwhile?: string;
}): Promise<string | undefined> {
  let held = before === undefined ? undefined : secret(before);
  const write = async (_resource: unknown, body: Secret): Promise<never> => {
    held = { ...secret(""), data: body.data ?? {} };
    return held as never;
  };
  const host = fakeClient({
    find: async () => held as never,
    create: write as never,
    patch: ((resource: unknown, _ref: unknown, { body }: { body: Secret }) => write(resource, body)) as never,
    delete: async () => {
      held = undefined;
    },
  });
  const undo = new UndoStack();
  const options = { cluster: "west", kubeconfig: "ours", expires: "2026-01-01T00:00:00Z" };
  await storeCredentials(options, { host, undo, signal, replaced: held });
  expect(held?.data).toEqual({ kubeconfig: btoa("ours") });
  if (meanwhile !== undefined) held = secret(meanwhile);
  expect(await undo.run(() => {})).toEqual([]);
  const { kubeconfig } = held?.data ?? {};
  return kubeconfig === undefined ? undefined : atob(kubeconfig);
}

test.each([
  ["go, when there were none", {}, undefined],
  ["are replaced by those that were there", { before: "earlier" }, "earlier"],
  ["stay, when another join has written its own", { meanwhile: "theirs" }, "theirs"],
])("an undo of stored credentials %s", async (_what, given, expected) => {
  expect(await storeAndUndo(given)).toBe(expected);
});

/** A host with one Secret, which takes a write only of the version that it names, as API servers do. */
function hostWith(held: Stored<Secret> | undefined) {
  const state = { held, afterFind: () => {} };
  const conflict = (): never => {
    throw new KubeError("changed", { code: "Conflict", cluster: "host", verb: "patch", resource: "secrets" });
  };
  const patch = async (_resource: unknown, _ref: unknown, { body }: { body: Stored<Secret> }): Promise<never> => {
    const { resourceVersion } = body.metadata;
    if (resourceVersion !== undefined && resourceVersion !== state.held?.metadata.resourceVersion) conflict();
    state.held = { ...secret(""), ...body, metadata: { ...secret("").metadata, resourceVersion: "9" } };
    return state.held as never;
  };
  const client = fakeClient({
    find: async () => {
      const found = state.held;
      state.afterFind();
      return found as never;
    },
    create: (async (_resource: unknown, made: Secret) => {
      state.held = { ...secret(""), data: made.data ?? {} };
    }) as never,
    patch: patch as never,
    delete: async (_resource, _ref, { uid } = {}) => {
      if (uid !== undefined && uid !== state.held?.metadata.uid) conflict();
      state.held = undefined;
    },
  });
  return { state, client };
}

const theirs = (): Stored<Secret> => {
  const { metadata, ...rest } = secret("theirs");
  return { ...rest, metadata: { ...metadata, uid: "another", resourceVersion: "7" } };
};

test.each([
  ["that a join made", undefined],
  ["that somebody else made", { name: "made-by-gitops", key: "kubeconfig" }],
])("refuses to overwrite a Secret %s that changed since it was read", async (_what, foreign) => {
  const { state, client: host } = hostWith(theirs());
  const options = { cluster: "west", kubeconfig: "ours", expires: "2026-01-01T00:00:00Z", foreign };
  const storing = storeCredentials(options, { host, undo: new UndoStack(), signal, replaced: secret("earlier") });
  await expect(storing).rejects.toMatchObject({ code: "Conflict" });
  expect(state.held).toEqual(theirs());
});

test.each([
  ["deletes nothing", undefined],
  ["puts nothing back", secret("earlier")],
])("an undo %s over a Secret that is another one by the time it writes", async (_what, replaced) => {
  const { state, client: host } = hostWith(replaced);
  const undo = new UndoStack();
  const options = { cluster: "west", kubeconfig: "ours", expires: "2026-01-01T00:00:00Z" };
  await storeCredentials(options, { host, undo, signal, replaced });
  state.afterFind = () => {
    state.held = theirs();
  };
  await undo.run(() => {});
  expect(state.held).toEqual(theirs());
});

test.each([
  ["that has nothing of what is written", { labels: { app: "x" }, annotations: { a: "b" } }, { other: "b3RoZXI=" }],
  [
    "that an earlier join made",
    {
      labels: { "legation.dev/cluster": "west" },
      annotations: { "legation.dev/token-expires": "2020-01-01T00:00:00Z" },
    },
    { kubeconfig: btoa("earlier"), other: "b3RoZXI=" },
  ],
])("an undo restores a Secret %s exactly", async (_which, marks, data) => {
  const host = new MemoryCluster("host", "host-1");
  const ref = { namespace: "legation-system", name: "member-west" };
  host.put(secrets, Object.assign({ metadata: { ...ref, ...marks } }, { data }));
  const replaced = host.peek<Secret>(secrets, ref);
  const undo = new UndoStack();
  const options = { cluster: "west", kubeconfig: "ours", expires: "2026-01-01T00:00:00Z" };
  await storeCredentials(options, { host: host.client, undo, signal, replaced });
  expect(await undo.run(() => {})).toEqual([]);
  const restored = host.peek<Secret>(secrets, ref);
  expect(restored?.metadata).toEqual({ ...replaced?.metadata, resourceVersion: expect.any(String) });
  expect(restored?.data).toEqual(data);
});

test("an undo keeps what another client wrote beside it meanwhile", async () => {
  const host = new MemoryCluster("host", "host-1");
  const ref = { namespace: "legation-system", name: "member-west" };
  host.put(secrets, Object.assign({ metadata: { ...ref, annotations: { a: "b" } } }, { data: { other: btoa("1") } }));
  const undo = new UndoStack();
  const options = { cluster: "west", kubeconfig: "ours", expires: "2026-01-01T00:00:00Z" };
  const replaced = host.peek<Secret>(secrets, ref);
  await storeCredentials(options, { host: host.client, undo, signal, replaced });
  const body = { metadata: { annotations: { a: "c" } }, data: { other: btoa("2") } };
  await host.client.patch(secrets, ref, { type: "merge", body });
  expect(await undo.run(() => {})).toEqual([]);
  expect(host.peek<Secret>(secrets, ref)).toMatchObject({
    metadata: { annotations: { a: "c" } },
    data: { other: btoa("2") },
  });
});

const account = (uid: string | undefined): ReturnType<typeof fakeClient> =>
  fakeClient({
    list: async () => {
      if (uid === "refused") {
        throw new KubeError("no", { code: "Unauthorized", cluster: "west", verb: "list", resource: "serviceaccounts" });
      }
      return { items: uid === undefined ? [] : [{ metadata: { uid } }] } as never;
    },
  });

test.each([
  ["has the same service account", "uid-1", true],
  ["has another service account", "uid-2", false],
  ["has no service account of this host", undefined, false],
  ["does not say", "refused", true],
])("tells whether another join's credentials lead to this member, which %s: %j, %j", async (_what, uid, same) => {
  const options = {
    member: { client: account("uid-1") },
    hostId: "host-1",
    name: "west",
    connectText: async () => ({ client: account(uid) }) as never,
    signal,
  };
  expect(await isSameMember(secret("theirs"), options)).toBe(same);
});
