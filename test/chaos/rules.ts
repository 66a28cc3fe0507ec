import { VIRTUAL_NODE_PREFIX } from "../../src/api/keys.ts";
import { pods } from "../../src/kube/resources.ts";
import type { PodHistories } from "../support/delegated/histories.ts";
import { legationWrites } from "../support/delegated/writes.ts";
import { overlaps, type PodLife, podLives } from "../support/harness/pod-lives.ts";
import type { Scene } from "./scene.ts";
import { FOREIGN_NAME, REUSED_NAME } from "./workloads.ts";

const ORDER = ["None", "Pending", "Running", "Succeeded", "Failed"];

/** Violations by pods of the host: running on its nodes, phases that went backwards, `PodScheduled` not as the Binding has it. */
export function wrongHistories(histories: PodHistories): string[] {
  const wrong: string[] = [];
  for (const { name, node, phases, misscheduled } of histories.values()) {
    const order = phases.map(({ phase }) => ORDER.indexOf(phase));
    const back = order.some((place, index) => index > 0 && place < (order[index - 1] ?? 0));
    const twice = phases.filter(({ phase }) => phase === "Succeeded" || phase === "Failed").length > 1;
    if (back || twice) wrong.push(`the phase of ${name} went ${phases.map(({ phase }) => phase).join(", ")}`);
    if (misscheduled) wrong.push(`PodScheduled of ${name} was True before its Binding, or not True after it`);
    const mayStay = name.startsWith("home-");
    if (node !== undefined && !node.startsWith(VIRTUAL_NODE_PREFIX) && !mayStay) wrong.push(`${name} ran on ${node}`);
  }
  return wrong;
}

/** Every delegate that ever was, in all members. */
export async function delegateLives({ members, namespace, passing }: Scene): Promise<PodLife[]> {
  const lives = Object.values(members).flatMap((member) =>
    [namespace, ...passing].map(async (name) =>
      // A name is a pod's in its namespace only.
      (await podLives(member, name)).map((life) => ({ ...life, name: `${name}/${life.name}` })),
    ),
  );
  return (await Promise.all(lives)).flat().filter(({ name }) => !name.endsWith(`/${FOREIGN_NAME}`));
}

/**
 * Returns pairs of delegates that had one name at one moment. Names that are used again may be in a member that has left,
 * whose containers are not waited for: `reused` says whether they count. A deletion by force waits for no containers.
 */
export function twins(
  lives: readonly PodLife[],
  { reused, forced }: { readonly reused: boolean; readonly forced: ReadonlySet<string> },
): string[] {
  const isReused = (name: string): boolean => name.endsWith(`/${REUSED_NAME}`) || /\/set-\d+-\d+$/.test(name);
  const counted = lives.filter(({ name }) => !isReused(name) || (reused && !forced.has(name)));
  return overlaps(counted).map((pair) => `two delegates at once: ${JSON.stringify(pair)}`);
}

/** Makes a pod that is not Legation's in each member. */
export async function makeForeignPods({ clients, namespace }: Pick<Scene, "clients" | "namespace">): Promise<void> {
  const pod = {
    metadata: { namespace, name: FOREIGN_NAME },
    spec: { containers: [{ name: "main", image: "main:1" }] },
  };
  await Promise.all([clients.west, clients.east].map((member) => member.create(pods, pod)));
}

/** Returns Legation's writes on those pods. */
export async function foreignWrites({ members, namespace }: Scene): Promise<string[]> {
  const all = await Promise.all(Object.values(members).map((member) => legationWrites(member, namespace)));
  return all
    .flatMap((writes) => writes.pods.get(FOREIGN_NAME) ?? [])
    .map((write) => `${write} of a pod that is not Legation's`);
}
