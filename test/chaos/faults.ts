import { setTimeout as sleep } from "node:timers/promises";
import { SYSTEM_NAMESPACE } from "../../src/api/keys.ts";
import { delegatedTypes } from "../../src/api/resources.ts";
import { leaseOf, slotOf } from "../../src/api/shards.ts";
import { leases, namespaces, nodes, pods } from "../../src/kube/resources.ts";
import { isNodeReady } from "../../src/placement/node-fit.ts";
import { podsOf } from "../support/harness/pods-of.ts";
import { eventually } from "../support/harness/wait.ts";
import { legation as legationCommand } from "../support/legation/cli.ts";
import type { LegationProcess } from "../support/legation/start.ts";
import { redirect } from "../support/write-gate/redirect.ts";
import type { ReadTrap, Trap } from "../support/write-gate/write-gate.ts";
import { type AgentFault, injectAgentFault, isAgentFault } from "./agents.ts";
import { CUSTOM_KINDS, typeName } from "./objects/kinds.ts";
import { allowAgain, define, undefine } from "./objects/setup.ts";
import { type Happening, pick } from "./plan.ts";
import type { Scene } from "./scene.ts";
import { FOREIGN_NAME } from "./workloads.ts";

const HOUR_MS = 3_600_000;
const OTHER = { west: "east", east: "west" } as const;
// Longer than a request's default deadline.
const SLOW_LIST_MS = 25_000;
// Shorter than a fault may last, and long enough for a machine that has much to do.
export const LEASE_SECONDS = 8;

/** Breaks something and mends it when its time has come. */
export async function inject(scene: Scene, happening: Extract<Happening, { readonly type: "fault" }>): Promise<void> {
  const { fault, member: name, lastsMs, dice } = happening;
  if (isAgentFault(fault)) return breakAgent(scene, fault, name, lastsMs);
  const { controller } = scene.legation;
  const member = scene.members[name];
  const during = async (breakIt: () => void | Promise<void>, mendIt: () => void | Promise<void>): Promise<void> => {
    await breakIt();
    await sleep(lastsMs);
    await mendIt();
  };
  switch (fault) {
    case "controller killed":
      return during(
        () => controller.stop("SIGKILL"),
        () => controller.start(),
      );
    case "Kueue killed":
      return scene.kueue?.kill();
    case "controller paused":
      return during(
        () => controller.freeze(),
        () => controller.thaw(),
      );
    case "host API server restarted":
      return scene.host.apiServer.restart();
    case "member API server stopped":
      return during(
        () => member.apiServer.stop("SIGKILL"),
        () => member.apiServer.start(),
      );
    case "member API server frozen":
      return during(
        () => member.apiServer.freeze(),
        () => member.apiServer.thaw(),
      );
    case "member frozen until it is lost":
      return during(
        () => member.apiServer.freeze().then(() => nodeLost(scene, name)),
        () => member.apiServer.thaw(),
      );
    case "member etcd restarted":
      return member.etcd.restart();
    case "member cut off":
      return during(
        () => member.proxy.cut(),
        () => member.proxy.heal(),
      );
    case "member swallows everything":
      return during(
        () => member.proxy.blackhole(),
        () => member.proxy.heal(),
      );
    case "member's answers lost":
      return during(
        () => member.proxy.deaf("answers"),
        () => member.proxy.heal(),
      );
    case "requests to member lost":
      return during(
        () => member.proxy.deaf("requests"),
        () => member.proxy.heal(),
      );
    case "member slow":
      return during(
        () => member.proxy.slow(300),
        () => member.proxy.heal(),
      );
    case "member's connections reset":
      return member.proxy.reset();
    case "virtual node cordoned":
      return during(
        () => cordon(scene, name, true),
        () => cordon(scene, name, false),
      );
    case "delegate deleted in its member": {
      const all = await podsOf(scene.clients[name], scene.namespace);
      const found = all.filter(({ metadata }) => metadata.name !== FOREIGN_NAME);
      if (found.length === 0) return;
      const { metadata } = pick(found, dice);
      await scene.clients[name].delete(pods, { namespace: scene.namespace, name: metadata.name });
      return;
    }
    case "leader ends":
      return during(
        () => leader(scene).stop("SIGTERM"),
        () => startAll(scene),
      );
    case "a controller leaves for a while": {
      const leaving = pick(scene.others ?? [], dice);
      return during(
        () => leaving.stop(),
        () => leaving.start(),
      );
    }
    case "one controller cut off beyond its lease":
      await scene.link?.set({ kind: dice < 0.5 ? "cut" : "blackhole" });
      await sleep(1.5 * LEASE_SECONDS * 1000);
      await scene.link?.set({ kind: "forward" });
      return startAll(scene);
    case "leader killed for good":
      await leader(scene).stop("SIGKILL");
      await sleep(1.5 * LEASE_SECONDS * 1000);
      return startAll(scene);
    case "controller paused beyond its lease": {
      const paused = leader(scene);
      await paused.freeze();
      await sleep(1.5 * LEASE_SECONDS * 1000);
      paused.thaw();
      // The process ends by itself, since another leads by now.
      await sleep(1_000);
      return startAll(scene);
    }
    case "namespace deleted in its member":
      for (const kind of [...scene.kinds, "Job"]) scene.ledger.emptied.add(`${name}/${kind}`);
      return scene.clients[name].delete(namespaces, { name: scene.namespace });
    case "member's watches expired":
      // The next watch cache starts when the server is back: clients with an older version must list again.
      return during(
        () => member.proxy.cut(),
        async () => {
          await member.apiServer.restart();
          await member.proxy.heal();
        },
      );
    case "member's lists slow":
      return withReads(scene, name, { catches: () => true, lists: "held", cutsWatches: true }, SLOW_LIST_MS);
    case "one watch of a member cut":
      return withReads(scene, name, { ...oneType(scene, dice), lists: "held", cutsWatches: true }, lastsMs);
    case "one watch of a member cut, and lists refused":
      return withReads(scene, name, { ...oneType(scene, dice), lists: 500, cutsWatches: true }, 2 * lastsMs);
    case "host refuses a write: 409":
      return gated(scene, { when: "refused", status: 409 }, lastsMs);
    case "host refuses a write: 429":
      return gated(scene, { when: "refused", status: 429 }, lastsMs);
    case "host refuses a write: 500":
      return gated(scene, { when: "refused", status: 500 }, lastsMs);
    case "host's answer to a write lost":
      return gated(scene, { when: "after" }, lastsMs);
    case "host's answer to a write lost, and unseen":
      return gated(scene, { when: "lost" }, lastsMs);
    case "lease deleted":
      return scene.clients.host.delete(leases, {
        namespace: SYSTEM_NAMESPACE,
        name: leaseOf(Math.floor(dice * (scene.shards ?? 1))),
      });
    case "controller's clock set on by an hour":
      return clockSet(scene, HOUR_MS, lastsMs);
    case "controller's clock set back by an hour":
      return clockSet(scene, -HOUR_MS, lastsMs);
    case "host API server stopped":
      return during(
        () => scene.host.apiServer.stop("SIGKILL"),
        () => scene.host.apiServer.start(),
      );
    case "host API server frozen":
      return during(
        () => scene.host.apiServer.freeze(),
        () => scene.host.apiServer.thaw(),
      );
    case "host etcd restarted":
      return scene.host.etcd.restart();
    case "controllers cut off from the host":
      return during(
        () => scene.host.proxy.cut(),
        () => scene.host.proxy.heal(),
      );
    case "host slow for the controllers":
      return during(
        () => scene.host.proxy.slow(200),
        () => scene.host.proxy.heal(),
      );
    case "host's answers lost":
      return during(
        () => scene.host.proxy.deaf("answers"),
        () => scene.host.proxy.heal(),
      );
    case "member leaves and joins again": {
      const kubeconfig = `--kubeconfig=${scene.host.kubeconfig}`;
      await legationCommand(["unjoin", name, kubeconfig, "--force"]);
      await scene.legation.join(name, member);
      const gate = scene.memberGates?.[name];
      if (gate !== undefined) await redirect(scene.clients.host, name, gate);
      return;
    }
    case "DelegatedType deleted for a while": {
      const kind = pick(scene.kinds, dice);
      return during(
        () => scene.clients.host.delete(delegatedTypes, { name: typeName(kind) }),
        () => allowAgain(scene.clients.host, kind),
      );
    }
    case "definition missing in a member": {
      const kind = pick(CUSTOM_KINDS, dice);
      scene.ledger.emptied.add(`${name}/${kind}`);
      return during(
        () => undefine(scene.clients[name], kind),
        () => define(scene.clients[name], kind),
      );
    }
  }
}

/** Traps reads of the member for a while, or of the other one where this has an agent. */
async function withReads(
  { memberGates = {} }: Scene,
  wanted: "west" | "east",
  trap: ReadTrap,
  lastsMs: number,
): Promise<void> {
  const gate = memberGates[wanted] ?? memberGates[OTHER[wanted]];
  if (gate === undefined) return;
  gate.setReads(trap);
  await sleep(lastsMs);
  gate.release();
}

/** Picks a type whose reads are trapped. */
function oneType({ kinds }: Scene, dice: number): Pick<ReadTrap, "catches"> {
  const plural = pick(["pods", "jobs", ...kinds.map((kind) => `${kind.toLowerCase()}s`)], dice);
  return { catches: (path) => path.split("/").includes(plural) };
}

/** Breaks the agent of this member, or of the other one where this has none. */
function breakAgent(scene: Scene, fault: AgentFault, wanted: "west" | "east", lastsMs: number): Promise<void> {
  const { agents = {} } = scene;
  const name = agents[wanted] === undefined ? OTHER[wanted] : wanted;
  const agent = agents[name];
  if (agent === undefined) throw new Error("there is no agent");
  return injectAgentFault(agent, fault, { lastsMs, lost: () => nodeLost(scene, name) });
}

async function clockSet({ setClock }: Scene, ms: number, lastsMs: number): Promise<void> {
  if (setClock === undefined) throw new Error("nobody can set the controllers' clock");
  setClock(ms);
  await sleep(lastsMs);
  setClock(0);
}

/** The process that has last begun to lead the namespace. */
function leader({ legation: { controller }, others = [], namespace, shards = 1 }: Scene): LegationProcess {
  if (others.length === 0) throw new Error("there is one controller alone");
  const shard = shards === 1 ? "" : `"shard":${slotOf(namespace) % shards},`;
  const ledAt = ({ log }: LegationProcess): string =>
    /"time":"([^"]+)"/.exec(
      log()
        .split("\n")
        .findLast((line) => line.includes('"msg":"leading"') && line.includes(shard)) ?? "",
    )?.[1] ?? "";
  return [controller, ...others].reduce((last, one) => (ledAt(one) > ledAt(last) ? one : last));
}

/** Starts what does not run. */
async function startAll({ legation: { controller }, others = [] }: Scene): Promise<void> {
  await Promise.all([controller, ...others].map((process) => process.start()));
}

// A gate catches one in this many writes.
const ONE_IN = 5;

/** Catches one write in a few, for a while. */
async function gated({ gate, namespace }: Scene, how: Pick<Trap, "when" | "status">, lastsMs: number): Promise<void> {
  if (gate === undefined) throw new Error("there is no gate");
  const until = performance.now() + lastsMs;
  const set = (): void => {
    let seen = 0;
    gate.set(namespace, {
      ...how,
      catches: ({ path }) => {
        if (!path.includes(`/namespaces/${namespace}/`)) return false;
        seen += 1;
        return seen === ONE_IN;
      },
      onCaught: async () => {
        if (performance.now() < until) set();
      },
    });
  };
  set();
  await sleep(lastsMs);
  gate.release();
}

/** Waits until the member's virtual node is not Ready; while the other member is lost, too, it stays so. */
async function nodeLost({ clients: { host } }: Scene, member: string): Promise<void> {
  const isLost = async (): Promise<boolean> => !isNodeReady(await host.get(nodes, { name: `legation-${member}` }));
  await eventually(isLost, { timeoutMs: 60_000, intervalMs: 500 }).catch(() => undefined);
}

/** Opens the member's virtual node for new pods, or closes it. */
export async function cordon({ clients }: Scene, member: string, unschedulable: boolean): Promise<void> {
  await clients.host.patch(nodes, { name: `legation-${member}` }, { type: "merge", body: { spec: { unschedulable } } });
}
