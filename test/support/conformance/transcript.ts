import type { ClusterInfo } from "../clusters/types.ts";
import { eventually } from "../harness/wait.ts";
import { runStreaming } from "../streams/kubectl.ts";
import type { Call, Scenario, Side } from "./scenario.ts";

/** Lines of what a person at a terminal has seen, without what no two runs have in common. */
export type Transcript = readonly string[];

/** A namespace, and the credentials by which a person works there. */
interface Terminal {
  readonly cluster: Pick<ClusterInfo, "name" | "kubeconfig">;
  readonly namespace: string;
}

/** Runs every call of a scenario, one after the other. */
export async function transcribe({ calls }: Scenario, place: Terminal, side: Side): Promise<Transcript> {
  const lines: string[] = [];
  for (const call of calls) lines.push(...(await outcomeOf(call, place, side)));
  return lines;
}

async function outcomeOf(call: Call, place: Terminal, side: Side): Promise<string[]> {
  const once = async (): Promise<string[]> => {
    const { cluster, namespace } = place;
    const { code, stdout, stderr } = await runStreaming(
      ["-n", namespace, ...words(call.kubectl.replaceAll("<namespace>", namespace))],
      {
        kubeconfig: cluster.kubeconfig,
        transport: "WebSocket",
        // Longer than any call's own timeout, so that kubectl says itself what it waits for.
        timeoutMs: 180_000,
        ...(call.input === undefined ? {} : { input: inputText(call.input) }),
      },
    );
    const text = (output: string): string[] => normalLines(output, place);
    const out = text(stdout.toString());
    return [...(call.unordered === true ? out.sort() : out), ...text(stderr).map((line) => `! ${line}`), `= ${code}`];
  };
  const until = call.until instanceof RegExp ? call.until : call.until?.[side];
  const lines =
    until === undefined
      ? await once()
      : await eventually(
          async () => {
            const seen = await once();
            if (until.test(seen.join("\n"))) return seen;
            throw new Error(seen.join("\n"));
          },
          { timeoutMs: 150_000, intervalMs: 300, what: `${place.cluster.name}: ${call.kubectl} shows ${until}` },
        );
  return [`$ ${call.kubectl}`, ...lines];
}

function inputText(input: string | readonly object[]): string {
  return typeof input === "string" ? input : JSON.stringify({ apiVersion: "v1", kind: "List", items: input });
}

/** The words of a command line; single quotes keep spaces. */
function words(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain = ""]) => quoted ?? plain);
}

const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
/** Output that differs from run to run on any cluster. */
const RUN_VALUES: readonly (readonly [RegExp, string])[] = [
  [UUID, "<uid>"],
  // The API server says it so to those who ask by WebSocket; kubectl may then ask again by SPDY.
  [/\bInternal error occurred: (?=unable to upgrade connection: )/g, ""],
  // The value of a kubelet that read the cgroup of a container without limit.
  [/\bresources:\n\s+limits:\n\s+memory: 9007199254740988Ki(?=\n)/g, "resources: {}"],
  // kubectl, when it was still sending as the command ended.
  [/^.*\bE\d{4} .* v2\.go:\d+\] "Copying stdin failed" .*$\n?/gm, ""],
  [/\b[0-9a-f]{64}\b/g, "<container>"],
  [/\b10\.\d+\.\d+\.\d+\b/g, "<ip>"],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\b/g, "<time>"],
  [/\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/g, "<time>"],
  [/\bresourceVersion: "\d+"/g, 'resourceVersion: "<version>"'],
  [/\bkube-api-access-[a-z0-9]{5}\b/g, "kube-api-access-<generated>"],
  [/\bweb-[0-9a-f]{8,10}-[a-z0-9]{5}\b/g, "web-<hash>-<generated>"],
  [/\bweb-(\d-)?[bcdfghjklmnpqrstvwxz2456789]{5}\b/g, "web-$1<generated>"],
  // kubectl's ages; a count of repetitions stands before some of them.
  [/(?<=\s)(\d+[smhd])+( ago)?(?=[\s)])/g, "<age>"],
  [/\(x\d+ over <age>\)/g, ""],
];

/**
 * The text without what a kubelet tells of the resources of pods that have ended: it reads them from their cgroups, where it
 * comes in time.
 */
function withoutLastResources(text: string): string {
  if (!/^\s*phase: (Succeeded|Failed)$/m.test(text) || /^\s*phase: (Pending|Running)$/m.test(text)) return text;
  const kept: string[] = [];
  let status: number | undefined;
  let skipped: number | undefined;
  for (const line of text.split("\n")) {
    const indent = line.search(/\S/);
    if (status !== undefined && indent <= status) status = undefined;
    if (skipped !== undefined && indent <= skipped) skipped = undefined;
    if (line.trim() === "status:") status = indent;
    if (status !== undefined && /^\s*resources:/.test(line)) skipped = indent;
    if (skipped === undefined) kept.push(line);
  }
  return kept.join("\n");
}

function normalLines(text: string, { namespace, cluster }: Terminal): string[] {
  let normal = withoutLastResources(text)
    .replaceAll(namespace, "<namespace>")
    .replaceAll(`${cluster.name}-real`, "<node>");
  normal = normal.replaceAll(/\b(west|plain)-real\b|\blegation-west\b/g, "<node>");
  for (const [pattern, replacement] of RUN_VALUES) normal = normal.replaceAll(pattern, replacement);
  // Columns are as wide as their longest value.
  const lines = normal.split("\n").map((line) => line.trimEnd().replaceAll(/(\S) {2,}/g, "$1  "));
  return lines.filter((line) => line !== "");
}
