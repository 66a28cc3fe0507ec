import { describe, expect, test } from "vitest";
import type { KubeNode, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { journeyOf } from "../../../../src/cli/explain/pod.ts";
import { readMember } from "../../../../src/cli/explain/read-pod.ts";
import { memberTroubles } from "../../../../src/cli/explain/trouble.ts";
import { journeyText } from "../../../../src/cli/status/pod-text.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { endedStatus, type PodParts, proxyPod, runningStatus } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { recordedSession } from "../session.ts";
import { host, type MemberParts } from "../simulation/host.ts";

const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid: "s", controller: true };
const since = "2026-01-01T10:00:00Z";
const taint = "node.kubernetes.io/unreachable";
const evicted = expect.stringMatching(
  new RegExp(`^300 s after its node gets the taint ${taint}, Kubernetes evicts them: .*nothing replaces a bare pod$`),
);
const tolerations = [{ key: taint, operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 }];
const condition = (status: "False" | "Unknown", message: string) => [
  { type: "Ready", status, reason: "Because", message, lastTransitionTime: since },
];
const lost: West = { status: { conditions: condition("False", "connect ECONNREFUSED") } };
const cordoned: West = { node: { unschedulable: true } };

interface West extends MemberParts {
  /** Conditions of its node. */
  readonly nodeStatus?: KubeNode["status"];
  readonly deletionTimestamp?: string;
}

/** The pod `shop/web-0` in `west`. */
function replica({ metadata = {}, ...parts }: PodParts = {}): Stored<Pod> {
  const annotations = { "legation.dev/cluster": "west", "legation.dev/delegate-uid": "d" };
  return proxyPod({
    name: "web-0",
    spec: { nodeName: "legation-west", tolerations },
    status: runningStatus(),
    metadata: { namespace: "shop", ownerReferences: [owner], annotations, ...metadata },
    ...parts,
  });
}

function told(
  { nodeStatus, deletionTimestamp, ...parts }: West,
  pod: Stored<Pod> = replica(),
): readonly (string | undefined)[] {
  const { clusters, nodes } = host({ west: parts });
  const [cluster] = clusters;
  const [node] = nodes;
  if (cluster === undefined || node === undefined) throw new Error("there are a Cluster and its node");
  const metadata = { ...cluster.metadata, ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) };
  return memberTroubles(pod, { ...cluster, metadata }, { ...node, ...(nodeStatus && { status: nodeStatus }) }).flatMap(
    ({ what, remedy }) => [what, remedy],
  );
}

const cordonWords = "west: its virtual node is cordoned";
const uncordon = "`kubectl uncordon legation-west` lets pods go there again";

describe("the troubles of a pod's member say", () => {
  test.each<[string, West, Stored<Pod>, (string | undefined)[]]>([
    ["nothing while it is ready", {}, replica(), []],
    ["nothing when the pod has ended", lost, replica({ status: endedStatus(0) }), []],
    [
      "that it is lost, and when its pods are evicted",
      lost,
      replica(),
      [`west is not ready: connect ECONNREFUSED; 1 pod there may run on, and the status shown is old`, evicted],
    ],
    [
      "that it is lost, and how to let a pod go that is being deleted",
      lost,
      replica({ metadata: { deletionTimestamp: since } }),
      [
        expect.stringContaining("west is not ready"),
        "pods that are being deleted end when west is ready again; where it is gone for good: " +
          "kubectl -n shop delete pod web-0 --grace-period=0 --force",
      ],
    ],
    [
      "that no controller reports on it any more",
      { nodeStatus: { conditions: condition("Unknown", "Kubelet stopped posting node status.") } },
      replica(),
      [
        "west is not ready: its node legation-west is not Ready, so what is shown may be old: does `legation controller` run?; " +
          "1 pod there may run on, and the status shown is old",
        evicted,
      ],
    ],
    ["that its node is cordoned", cordoned, replica(), [cordonWords, uncordon]],
    [
      "nothing of a cordon when the pod is being deleted",
      cordoned,
      replica({ metadata: { deletionTimestamp: since } }),
      [],
    ],
    [
      "both that it is lost and that its node is cordoned",
      { ...lost, ...cordoned },
      replica(),
      [expect.stringContaining("west is not ready"), expect.anything(), expect.stringContaining(cordonWords), uncordon],
    ],
    [
      "that it is being removed, and no way to open it again",
      { ...cordoned, deletionTimestamp: since },
      replica(),
      ["west is being removed", undefined],
    ],
  ])("%s", (_, parts, pod, expected) => {
    expect(told(parts, pod)).toEqual(expected);
  });
});

describe("the status of a pod", () => {
  const { signal } = new AbortController();
  const { clusters, nodes } = host({ west: cordoned });
  const shown = async (find: (plural: string) => object | undefined, pod = replica()): Promise<string> => {
    const client = fakeClient({ find: async ({ plural }: { plural: string }) => find(plural) });
    const news = await readMember(client, pod, signal);
    return journeyText(journeyOf(pod, [], {}, news), recordedSession().terminal);
  };

  test("names the trouble of its member below the pod's way, and what to do", async () => {
    const text = await shown((plural) => (plural === "nodes" ? nodes[0] : clusters[0]));
    expect(text.split("\n").slice(-2)).toEqual([`trouble: ${cordonWords}`, `  ${uncordon}`]);
  });

  test("says which right is missing where the account may read pods alone", async () => {
    const forbidden = (): never => {
      throw kubeError("Forbidden", "no", { cluster: "host", verb: "get", resource: "clusters", objectName: "west" });
    };
    expect(await shown(forbidden)).toMatch(
      /\nnot shown: whether west is ready, which the ClusterRole legation-viewer lets you read$/,
    );
  });

  test("names no trouble where the Cluster is gone, the pod has ended, or another scheduler has bound it", async () => {
    expect(await shown(() => undefined)).not.toContain("trouble:");
    const unread = (): never => {
      throw new Error("nothing is read");
    };
    expect(await shown(unread, replica({ metadata: { annotations: {} } }))).not.toContain("trouble:");
    expect(await shown(unread, replica({ status: endedStatus(0) }))).not.toContain("trouble:");
  });
});
