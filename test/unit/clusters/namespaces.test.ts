import { setTimeout } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import { MemberNamespaces } from "../../../src/clusters/namespaces.ts";
import type { KubeError, KubeErrorCode } from "../../../src/kube/errors.ts";
import { answering } from "../../support/builders/answers.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { cluster, member as memberNamed } from "../../support/builders/member.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

function failure(code: KubeErrorCode): KubeError {
  return kubeError(code, "no", { verb: "get", resource: "namespaces", objectName: "team" });
}

function namespacesOf(read: () => Promise<string>, createNamespaces = true) {
  const clock = new FakeClock();
  const get = vi.fn(async (): Promise<object> => ({ metadata: { name: "team", uid: await read() } }));
  const create = vi.fn(async (): Promise<object> => ({}));
  const client = fakeClient({ get: answering({}, get), create: answering({}, create) });
  const member = memberNamed("west", client, { cluster: cluster("west", { spec: { createNamespaces } }) });
  const namespaces = new MemberNamespaces({ id: "host-id", name: "cern" }, clock);
  return {
    clock,
    get,
    create,
    member,
    namespaces,
    controllers: (signal = new AbortController().signal) => namespaces.controllersOf(member, "team", signal),
  };
}

const owner = (uid: string) => [{ apiVersion: "v1", kind: "Namespace", name: "team", uid, controller: true }];

test("reads a namespace's uid once for concurrent pods, and again later", async () => {
  let uid = "first";
  const { clock, get, controllers } = namespacesOf(async () => uid);
  expect(await Promise.all([controllers(), controllers()])).toEqual([owner("first"), owner("first")]);
  uid = "second";
  await clock.advance(4_999);
  expect(await controllers()).toEqual(owner("first"));
  await clock.advance(1);
  expect(await controllers()).toEqual(owner("second"));
  expect(get).toHaveBeenCalledTimes(2);
});

test("shows pods without a controller where namespaces may not be read", async () => {
  let answer = (): Promise<string> => Promise.reject(failure("Forbidden"));
  const { clock, get, controllers } = namespacesOf(() => answer());
  expect(await controllers()).toEqual([]);
  expect(await controllers()).toEqual([]);
  expect(get).toHaveBeenCalledTimes(1);
  // Joined again.
  answer = async () => "uid";
  await clock.advance(300_000);
  expect(await controllers()).toEqual(owner("uid"));
});

test("retries a refused read of namespaces soon, then with backoff", async () => {
  const { clock, get, controllers } = namespacesOf(() => Promise.reject(failure("Forbidden")));
  const asked: number[] = [];
  for (let seconds = 0; seconds <= 1000; seconds += 5) {
    const before = get.mock.calls.length;
    await Promise.all([controllers(), controllers()]);
    if (get.mock.calls.length > before) asked.push(seconds);
    await clock.advance(5_000);
  }
  expect(asked).toEqual([0, 5, 15, 35, 75, 155, 315, 615, 915]);
});

test("rejects only the callers that shared a failed read", async () => {
  const answers = [() => Promise.reject(failure("ServerError")), async () => "uid"];
  const { controllers } = namespacesOf(() => answers.shift()?.() ?? Promise.reject(new Error("too often")));
  await expect(controllers()).rejects.toMatchObject({ code: "ServerError" });
  expect(await controllers()).toEqual(owner("uid"));
});

test("lets an aborted caller stop waiting for a hanging member, and others go on", async () => {
  let answer: (uid: string) => void = () => undefined;
  const { get, controllers } = namespacesOf(() => new Promise((resolve) => (answer = resolve)));
  const stop = new AbortController();
  const stopped = controllers(stop.signal);
  const waits = controllers();
  stop.abort(new Error("stopped"));
  await expect(stopped).rejects.toMatchObject({ code: "Aborted", resource: "namespaces", objectName: "team" });
  await expect(controllers(stop.signal)).rejects.toMatchObject({ code: "Aborted" });
  answer("uid");
  expect(await waits).toEqual(owner("uid"));
  expect(get).toHaveBeenCalledTimes(1);
});

test("creates a missing namespace, then reads its uid", async () => {
  const answers = [() => Promise.reject(failure("NotFound")), async () => "made"];
  const { namespaces, member, create, controllers } = namespacesOf(
    () => answers.shift()?.() ?? Promise.reject(new Error("too often")),
  );
  const { signal } = new AbortController();
  const tried: boolean[] = [];
  const make = (isNew: boolean): Promise<unknown> => {
    tried.push(isNew);
    return controllers(signal);
  };
  expect(await namespaces.createIn(member, "team", signal, make)).toEqual(owner("made"));
  expect(create).toHaveBeenCalledTimes(1);
  expect(tried).toEqual([false, true]);
});

test("creates all concurrent pods of a missing namespace, in any order of responses", async () => {
  const reads: PromiseWithResolvers<string>[] = [];
  const { namespaces, member, create, controllers } = namespacesOf(() => {
    const read = Promise.withResolvers<string>();
    reads.push(read);
    return read.promise;
  });
  const made = Promise.withResolvers<object>();
  create.mockReturnValue(made.promise);
  const { signal } = new AbortController();
  const pod = (): Promise<unknown> => namespaces.createIn(member, "team", signal, () => controllers(signal));
  const first = pod();
  reads[0]?.reject(failure("NotFound"));
  await vi.waitFor(() => expect(create).toHaveBeenCalled());
  // Asked before the namespace was made, and answered afterwards.
  const second = pod();
  expect(reads).toHaveLength(2);
  made.resolve({});
  await vi.waitFor(() => expect(reads).toHaveLength(3));
  reads[1]?.reject(failure("NotFound"));
  await setTimeout(0);
  reads[2]?.resolve("made");
  expect(await Promise.all([first, second])).toEqual([owner("made"), owner("made")]);
  expect(create).toHaveBeenCalledTimes(1);
  expect(reads).toHaveLength(3);
});

describe("where the Cluster forbids to create namespaces", () => {
  const { signal } = new AbortController();

  test("rejects a missing namespace, and names the field", async () => {
    const { namespaces, member, create } = namespacesOf(async () => "uid", false);
    const { resource, verb, cluster } = failure("NotFound");
    const missing = kubeError("NotFound", 'namespaces "team" not found', { cluster, verb, resource });
    await expect(namespaces.createIn(member, "team", signal, () => Promise.reject(missing))).rejects.toMatchObject({
      code: "NotFound",
      detail:
        'namespaces "team" not found, and spec.createNamespaces of Cluster west is false: ' +
        "make the namespace there, or set the field to true",
    });
    expect(create).not.toHaveBeenCalled();
  });

  test("reports another missing object as it is", async () => {
    const { namespaces, member } = namespacesOf(async () => "uid", false);
    const missing = failure("NotFound");
    await expect(namespaces.createIn(member, "team", signal, () => Promise.reject(missing))).rejects.toBe(missing);
  });

  test("uses an existing namespace", async () => {
    const { namespaces, member, create, controllers } = namespacesOf(async () => "uid", false);
    expect(await namespaces.createIn(member, "team", signal, () => controllers(signal))).toEqual(owner("uid"));
    expect(create).not.toHaveBeenCalled();
  });
});
