import { expect, test } from "vitest";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import { DeletedCopies } from "../../../../src/controllers/copying/deleted-copies.ts";
import { copyKey } from "../../../../src/controllers/copying/model.ts";
import { toCopy } from "../../../../src/copies/kind.ts";
import { SERVICES, type ServiceObject } from "../../../../src/copies/services.ts";
import { answering, listing } from "../../../support/builders/answers.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { member } from "../../../support/builders/member.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

const REF = { member: "west", kind: "Service", namespace: "team", name: "web" };
const KEY = copyKey(REF);
const source: Stored<ServiceObject> = {
  metadata: { name: "web", namespace: "team", uid: "source-uid", resourceVersion: "7" },
  spec: { selector: { app: "web" } },
};

function copyWith(clusterIP: string, metadata: object = {}): Stored<ServiceObject> {
  const made = toCopy(SERVICES.Service, source, HOST);
  const times = { creationTimestamp: "2026-02-03T04:05:06Z", resourceVersion: "3" };
  return {
    ...made,
    spec: { clusterIP },
    metadata: { ...made.metadata, ...times, name: "web", uid: "old", ...metadata },
  };
}

interface Case {
  readonly before?: Stored<ServiceObject>;
  readonly uid?: string;
  readonly namespaceSince?: string | Error;
}

/** Returns what the author is told when a copy is made in place of one that the watch has said to be gone. */
async function toldOf({ before = copyWith("10.0.0.1"), uid = "new", namespaceSince = "2026-01-01T00:00:00Z" }: Case) {
  const told: string[] = [];
  const copies = new DeletedCopies<ServiceObject>({
    record: (_about, { reason, message, dedupe }) => told.push(`${reason} ${message} [${dedupe}]`),
  });
  copies.note(KEY, before);
  const client = fakeClient({
    get: answering({}, () => {
      if (namespaceSince instanceof Error) throw namespaceSince;
      return { metadata: { name: "team", creationTimestamp: namespaceSince } };
    }),
    list: listing([copyWith("10.0.0.2", { uid })]),
  });
  const { signal } = new AbortController();
  for (let times = 0; times < 2; times += 1) {
    await copies.tell(member("west", client), SERVICES.Service, { key: KEY, ref: REF, source, uid, signal });
  }
  return told;
}

test("tells the author once that another client deleted a copy, and how its Service is reached now", async () => {
  expect(await toldOf({})).toEqual([
    "CopyDeleted west: another client there deleted Service web, and it was made again: its cluster IP there is 10.0.0.2 now, and " +
      "was 10.0.0.1, which running pods may still use (in a variable *_SERVICE_HOST, say) [source-uid/west/CopyDeleted]",
  ]);
});

test.each<[string, Case]>([
  ["lost its marks for a moment", { uid: "old" }],
  ["went with its namespace", { namespaceSince: "2026-02-03T04:05:07Z" }],
  ["may have gone with its namespace, which cannot be read", { namespaceSince: kubeError("Forbidden", "no") }],
  [
    "may have been collected with its owner",
    { before: copyWith("10.0.0.1", { ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "a", uid: "b" }] }) },
  ],
  ["was of an earlier object of the name", { before: copyWith("10.0.0.1", { annotations: {} }) }],
])("tells nothing of a copy that %s", async (_, deleted) => {
  expect(await toldOf(deleted)).toEqual([]);
});
