import type { ApiMode } from "../../api/annotations.ts";
import { defined } from "../../api/defined.ts";
import { type ObjectKey, objectKey, objectRef, type Pod, type Secret, type Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { notReadYet } from "../../clusters/readiness.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError, isRefusal } from "../../kube/errors.ts";
import type { HostIdentity } from "../../pods/delegate.ts";
import { type HomeApi, usesApi } from "../../pods/home-api.ts";
import { onClockStep, type Timer } from "../../runtime/clock.ts";
import { type ActionContext, Controller, type ControllerOptions, type Expectation } from "../../runtime/controller.ts";
import type { Events } from "../../runtime/event-bus.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import type { ReadStore } from "../../runtime/store.ts";
import { FORGET_HELD_FAILURE_MS, WriteGuard } from "../../runtime/write-guard.ts";
import type { ControllerEvents } from "../events.ts";
import type { RefusedWrites } from "../refused-writes.ts";
import { HomeAddresses } from "./address.ts";
import { decide, lacksTokens, renewalAge } from "./decide.ts";
import { apiSecret, issueTokens } from "./issue.ts";
import type { Action, DelegateView, IssueAction, IssuedTokens, Observed, TellAction } from "./model.ts";
import { MemberSecrets } from "./secrets.ts";
import { createApiSecret, replaceApiSecret } from "./write.ts";

export interface HomeApiOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly identity: HostIdentity;
  readonly registry: Pick<Registry, "cluster" | "holders" | "member" | "members" | "problem">;
  readonly recorder: Pick<EventRecorder, "record" | "isRecorded">;
  readonly refusedWrites: Pick<RefusedWrites, "tell" | "over">;
  /** Address of the host for members whose Cluster names none. */
  readonly server: string | undefined;
  /** Returns the IP address at which pods of a cluster reach the host through its agent. */
  readonly agentAddress: (cluster: string) => string | undefined;
  readonly proxies: Pick<ReadStore<Pod>, "get">;
  readonly events: Events<ControllerEvents>;
  readonly modeOf: (proxy: Stored<Pod>) => ApiMode | undefined;
}

type Context = ActionContext<ObjectKey>;
type Result = Promise<Expectation<Observed> | undefined>;

// A pod's writes, to the write guard: the host issues its token, and the member keeps its Secret.
const TOKEN = "token";
const SECRET = "secret";
// A quota, a policy or a missing service account lasts until the operator or the author acts.
const TOKEN_HOLD_MS = 30_000;
const CONTESTED_HOLD_MS = 10 * 60_000;

/** Keeps tokens for the host's API server in members, for the delegates that mount them. One key is one pod name. */
export class HomeApiController {
  readonly #options: HomeApiOptions;
  readonly #addresses: HomeAddresses;
  readonly #secrets: MemberSecrets;
  readonly #loop: Controller<ObjectKey, Observed, Action>;
  readonly #issued = new Map<ObjectKey, IssuedTokens>();
  #steps: Timer | undefined;
  readonly #guard: WriteGuard<ObjectKey>;

  constructor(options: HomeApiOptions) {
    this.#options = options;
    this.#guard = new WriteGuard({ clock: options.clock, forgetFailureMs: FORGET_HELD_FAILURE_MS });
    const { host, identity, server, agentAddress, events, clock, log } = options;
    const onChange = (): void => {
      events.emit("homeApi");
      this.#enqueueAll(options.registry.members());
    };
    this.#addresses = new HomeAddresses({ host, server, agentAddress, onChange, clock, log });
    this.#secrets = new MemberSecrets({
      hostId: identity.id,
      onSecret: (key) => this.#loop.enqueue(key),
      onRead: (member) => {
        events.emit("homeApi");
        this.#enqueueAll([member]);
      },
      clock,
      log,
    });
    this.#loop = new Controller<ObjectKey, Observed, Action>(
      {
        name: "home-api",
        observe: (key) => this.#observe(key),
        identify: ({ proxy }) => ({ proxy: proxy.metadata.uid }),
        decide,
        execute: (action, context) => this.#execute(action, context),
      },
      options,
    );
    events.onAny(["cluster"], () => this.#secrets.follow(options.registry.members()));
    events.on("connection", (member) => {
      // Pods that cannot be read at present run all the same, and need their tokens.
      if (member.probed.reachable) this.#enqueueAll([member]);
    });
    events.on("delegate", (_member, key) => this.#loop.enqueue(key));
    events.on("bound", (_cluster, key) => this.#loop.enqueue(key));
  }

  async start(signal: AbortSignal): Promise<void> {
    const { clock, registry } = this.#options;
    // Tokens expire while the machine is suspended, and timers wait no less for that.
    this.#steps = onClockStep(clock, () => this.#enqueueAll(registry.members()));
    await this.#addresses.start(signal);
  }

  async stop(): Promise<void> {
    this.#steps?.cancel();
    await this.#addresses.stop();
    await this.#secrets.stop();
    await this.#loop.stop();
  }

  onProxies(member: Member): void {
    this.#enqueueAll([member]);
  }

  hostAuthority(): string | undefined {
    return this.#addresses.hostAuthority();
  }

  of(name: string): HomeApi {
    const { registry } = this.#options;
    const cluster = registry.cluster(name);
    const member = registry.member(name);
    if (cluster === undefined || member === undefined) {
      return { state: "pending", message: registry.problem(name) ?? "it is not connected" };
    }
    const way = this.#addresses.of(cluster);
    if (way.state !== "known" || this.#secrets.read(member)) return way;
    return { state: "pending", message: notReadYet("Secrets, which hold tokens of pods,") };
  }

  #enqueueAll(members: readonly Member[]): void {
    for (const { metadata } of members.flatMap((member) => member.delegates.list())) {
      this.#loop.enqueue(objectKey(metadata));
    }
  }

  #observe(key: ObjectKey): Observed | undefined {
    const proxy = this.#options.proxies.get(key);
    const { namespace = "" } = objectRef(key);
    const delegates = this.#options.registry.holders(key).flatMap((member) => {
      const delegate = member.delegates.get(key);
      if (delegate === undefined || proxy === undefined) return [];
      const secret = this.#secrets.of(member, namespace, proxy.metadata.uid);
      // Pods of a member that does not answer still run, and need their tokens.
      const readable = member.probed.reachable && this.#secrets.read(member);
      const leftUntil = this.#guard.heldUntil(key, SECRET, delegate.metadata.uid);
      return [{ member: member.name, readable, delegate, ...defined({ secret, leftUntil }) }];
    });
    if (proxy === undefined || delegates.length === 0) {
      this.#issued.delete(key);
      this.#guard.forget(key);
      return undefined;
    }
    const untold = delegates.map((view) => this.#untold(proxy, view)).find((message) => message !== undefined);
    const notBefore = this.#guard.heldUntil(key, TOKEN);
    const issued = this.#issued.get(key);
    return { proxy, delegates, ...defined({ untold, notBefore, issued }) };
  }

  /** Returns undefined if the author chose that, or the namespace was told lately. */
  #untold(proxy: Stored<Pod>, { member, delegate }: DelegateView): Observed["untold"] {
    const { uid, namespace = "" } = proxy.metadata;
    if (!lacksTokens(delegate, uid) || !usesApi(proxy)) return undefined;
    const { recorder, modeOf } = this.#options;
    if (recorder.isRecorded(noHomeApiKey(member, namespace)) || modeOf(proxy) !== undefined) return undefined;
    const way = this.of(member);
    if (way.state !== "unknown") return undefined;
    return { member, message: `pods of this namespace have no service account token in ${member}: ${way.message}` };
  }

  async #execute(action: Action, context: Context): Result {
    if (action.type === "tell") {
      this.#tellNamespace(action, context.key);
      return undefined;
    }
    try {
      return await this.#issue(action, context);
    } catch (error) {
      if (!isRefusal(error) && !isKubeError(error, "NotFound")) throw error;
      if (isRefusal(error) && this.#guard.failed(context.key, TOKEN, error) === "transient") throw error;
      this.#refuse(action.proxy.metadata.uid, `the pod's token cannot be had: ${error.message}`, context);
      return () => true;
    }
  }

  async #issue({ member: name, proxy, delegateUid, replaces }: IssueAction, context: Context): Result {
    const { key, signal } = context;
    const { host, identity, registry, clock } = this.#options;
    const member = registry.member(name);
    const cluster = registry.cluster(name);
    const authority = cluster && this.#addresses.authority(cluster);
    // The arrival of a missing part is an event. A Secret with an authority keeps it, and gets new tokens.
    if (member === undefined || (authority === undefined && replaces === undefined)) return undefined;
    const asked = { now: clock.now(), wall: clock.wall() };
    const { data, expiresAt, lifetimeMs } = await issueTokens(host, proxy, authority, { now: asked.wall, signal });
    const age = renewalAge(lifetimeMs, Math.random());
    const noted = new Date(expiresAt - lifetimeMs + age).toISOString();
    const secret = apiSecret(proxy, identity, { delegateUid, data, renewAt: noted });
    const problem = await this.#write(member, secret, replaces?.uid, signal);
    if (problem !== undefined) {
      this.#refuse(proxy.metadata.uid, `the pod's token cannot be had: ${name}: ${problem}`, context);
      return () => true;
    }
    this.#guard.done(key, TOKEN);
    this.#options.refusedWrites.over(key, proxy.metadata.uid, TOKEN);
    this.#issued.set(key, { delegateUid, renewAt: asked.now + age, renewAtWall: asked.wall + age, noted });
    const hold = { content: delegateUid, holdMs: CONTESTED_HOLD_MS };
    if (this.#guard.written(key, SECRET, { delegateUid }, hold)) {
      this.#tellContested(name, secret, proxy.metadata.uid, context);
    }
    const before = replaces?.resourceVersion;
    return ({ delegates }) => {
      const view = delegates.find((other) => other.member === name);
      return view?.delegate.metadata.uid !== delegateUid || view.secret?.metadata.resourceVersion !== before;
    };
  }

  /** Returns why a retry is useless until the operator or author acts. */
  async #write(
    member: Member,
    secret: Secret,
    uid: string | undefined,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    this.#secrets.need(member);
    try {
      return uid === undefined
        ? await createApiSecret(member, secret, signal)
        : await replaceApiSecret(member, secret, uid, signal);
    } catch (error) {
      member.noteFailure(error);
      throw error;
    }
  }

  /** Records one event for all pods of a namespace: a burst of pods has one reason. */
  #tellNamespace({ proxyUid, member, message }: TellAction, key: ObjectKey): void {
    const ref = objectRef(key);
    const dedupe = noHomeApiKey(member, ref.namespace);
    this.#options.recorder.record({ ...ref, uid: proxyUid }, { reason: "NoHomeAPI", message, dedupe });
  }

  #tellContested(member: string, { metadata }: Secret, proxyUid: string, { key, log }: Context): void {
    const message =
      `another client in ${member} keeps changing or deleting Secret ${metadata?.name}, which has the pod's token: ` +
      "it is left so for ten minutes; have them leave it alone";
    log.warn({ member }, message);
    this.#options.recorder.record({ ...objectRef(key), uid: proxyUid }, { reason: "NoToken", message });
  }

  /** Tells the author once, and again when that event is old. */
  #refuse(proxyUid: string, message: string, { key, log }: Context): void {
    this.#guard.hold(key, TOKEN, "Refused", { holdMs: TOKEN_HOLD_MS });
    if (this.#options.refusedWrites.tell(key, proxyUid, TOKEN, { reason: "NoToken", message })) log.warn(message);
  }
}

function noHomeApiKey(member: string, namespace = ""): string {
  return `NoHomeAPI ${member}/${namespace}`;
}
