import { defined } from "../../api/defined.ts";
import { OWNER_ANNOTATION, WHOLE_KEY } from "../../api/keys.ts";
import {
  type ObjectKey,
  objectKey,
  objectRef,
  type PersistentVolumeClaim,
  type Pod,
  type Stored,
} from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { notReadYet } from "../../clusters/readiness.ts";
import { claimOwner, clusterOf } from "../../copies/claims.ts";
import { withoutAmounts } from "../../kube/messages.ts";
import { persistentVolumeClaims } from "../../kube/resources.ts";
import type { Needs, Preparation } from "../../placement/needs.ts";
import { isBound } from "../../pods/pod-state.ts";
import { Controller } from "../../runtime/controller.ts";
import { Reflector, type ReflectorEvent } from "../../runtime/reflector.ts";
import { ReverseIndex } from "../../runtime/reverse-index.ts";
import { type Hold, WriteGuard } from "../../runtime/write-guard.ts";
import { claimElsewhere, claimKeys, claimNeeds, neededClaim } from "../../scheduling/claim-needs.ts";
import { Copies } from "../copying/copies.ts";
import { type PodCopier, type PodCopierOptions, unboundProxy } from "../copying/pod-copier.ts";
import { REFUSED_FOR_MS } from "../copying/writer.ts";
import type { RestoredHost } from "../restored-host.ts";
import { decide } from "./decide.ts";
import { Executor } from "./execute.ts";
import { type Action, claimCreationIn, type Observed, uncertainCreationIn } from "./model.ts";

export interface ClaimOptions extends PodCopierOptions {
  readonly restoredHost: Pick<RestoredHost, "keeps" | "confirm">;
}

const KIND = "PersistentVolumeClaim";
// An operator of the member may carry labels of a whole object's copy over to its own claims, which hold data.
const NOT_DERIVED = { labelSelector: `!${WHOLE_KEY}` };
const UNREADABLE =
  "persistentvolumeclaims cannot be read on the host; if this lasts, run `legation install` again, since the access that an " +
  "earlier version was given does not include them";

/** Creates the host's claims in members: each in the member that its first pod goes to, as claims hold data. */
export class ClaimController implements PodCopier {
  readonly #options: ClaimOptions;
  readonly #claims: Reflector<PersistentVolumeClaim>;
  readonly #copies: Copies<PersistentVolumeClaim>;
  readonly #loop: Controller<ObjectKey, Observed, Action>;
  /** The claims of unbound proxies, by the proxies' keys. */
  readonly #waiting = new ReverseIndex<ObjectKey, ObjectKey>();
  /** The member that the first pod is about to go to, until the claim's annotation names it. */
  readonly #wanted = new Map<ObjectKey, { readonly uid: string; readonly member: string }>();
  readonly #guard: WriteGuard<ObjectKey>;
  readonly #executor: Executor;
  #started = false;

  constructor(options: ClaimOptions) {
    this.#options = options;
    const { host, identity, registry, memberNamespaces, clock, log } = options;
    this.#guard = new WriteGuard({ clock });
    this.#claims = new Reflector({
      client: host,
      resource: persistentVolumeClaims,
      clock,
      log,
      onEvent: ({ object }) => this.#onClaim(objectKey(object.metadata)),
      onState: (state) => {
        if (state === "watching") this.#onClaimsRead();
        if (state === "backing-off") this.#wakeAll();
      },
    });
    this.#copies = new Copies({
      hostId: identity.id,
      kinds: new Map([[KIND, { resource: persistentVolumeClaims, knownByLabels: () => true, copies: NOT_DERIVED }]]),
      onCopy: (_, { namespace, name }) => {
        this.#start();
        this.#onClaim(objectKey({ namespace, name }));
      },
      onRead: (member) => {
        this.onConnection(member);
        options.events.emit("copiesRead");
      },
      clock,
      log,
    });
    this.#executor = new Executor({
      host,
      registry,
      memberNamespaces,
      hostId: identity.id,
      restoredHost: options.restoredHost,
      guard: this.#guard,
      onRefused: (...write) => this.#onRefused(...write),
      onUncertain: (...create) => this.#onUncertain(...create),
      onReconsidered: (key) => this.#wake(key),
      clock,
    });
    this.#loop = new Controller<ObjectKey, Observed, Action>(
      {
        name: "claims",
        observe: (key) => this.#observe(key),
        decide,
        execute: (action, context) => this.#executor.execute(action, context),
      },
      options,
    );
  }

  async stop(): Promise<void> {
    await Promise.all([this.#claims.stop(), this.#copies.stop()]);
    await this.#loop.stop();
  }

  onMembers(): void {
    this.#copies.follow(this.#options.registry.members());
    this.#wakeAll();
  }

  onConnection(member: Member): void {
    if (!member.reachable || !this.#claims.store.synced) return;
    for (const copy of this.#copies.in(member)) this.#onClaim(objectKey(copy));
    for (const claim of this.#claims.store.list()) {
      if (clusterOf(claim) === member.name) this.#onClaim(objectKey(claim.metadata));
    }
  }

  onProxy({ type, object: proxy }: ReflectorEvent<Pod>): void {
    const claims = claimKeys(proxy);
    if (claims.length === 0) return;
    this.#start();
    const key = objectKey(proxy.metadata);
    if (type === "deleted" || isBound(proxy)) this.#waiting.delete(key);
    else this.#waiting.set(key, claims);
  }

  needs(proxy: Stored<Pod>): Needs | undefined {
    const keys = claimKeys(proxy);
    if (keys.length === 0) return undefined;
    if (!this.#claims.store.synced) {
      const isUnreadable = this.#claims.state === "backing-off";
      return isUnreadable ? { state: "missing", reason: "FailedMount", message: UNREADABLE } : { state: "awaited" };
    }
    return claimNeeds(
      keys,
      (key) => this.#claims.store.get(key),
      (name, claim) => this.#preparation(name, claim),
    );
  }

  /** Returns the host's claims by namespace, as far as they are read; undefined until those of `needed` are. */
  known(needed: ReadonlySet<string>): ReadonlyMap<string, readonly Stored<PersistentVolumeClaim>[]> | undefined {
    if (needed.size > 0) this.#start();
    const { store } = this.#claims;
    if (needed.size > 0 && !store.synced) return undefined;
    const byNamespace = Map.groupBy(store.list(), ({ metadata }) => metadata.namespace ?? "");
    return new Map([...needed, ...byNamespace.keys()].map((one) => [one, byNamespace.get(one) ?? []]));
  }

  /** Creates the proxy's claims in the member unless they belong to another. Reports whether all are there. */
  prepare(proxyKey: ObjectKey, proxyUid: string, member: string): boolean {
    const proxy = unboundProxy(this.#options.proxies, proxyKey, proxyUid);
    if (proxy === undefined) return true;
    const needs = this.needs(proxy);
    if (needs === undefined) return true;
    if (needs.state !== "there") return false;
    const preparation = needs.in(member);
    // All or none: claims of one pod in two members would keep it from both.
    if (preparation !== "unprepared") return preparation === "prepared";
    for (const key of claimKeys(proxy)) {
      const claim = this.#claims.store.get(key);
      if (claim === undefined) continue;
      if (this.#homeOf(key, claim) === undefined) this.#wanted.set(key, { uid: claim.metadata.uid, member });
      this.#onClaim(key);
    }
    return false;
  }

  #preparation(name: string, claim: Stored<PersistentVolumeClaim>): Preparation {
    const member = this.#options.registry.member(name);
    const key = objectKey(claim.metadata);
    const what = neededClaim(claim);
    const home = this.#homeOf(key, claim);
    if (home !== undefined && home !== name) {
      return { refused: claimElsewhere(claim, home, this.#options.registry.member(home) !== undefined) };
    }
    if (member === undefined) return "unprepared";
    if (!this.#copies.read(member)) return { refused: notReadYet("PersistentVolumeClaims") };
    const copy = this.#copyIn(member, key);
    if (copy === undefined) {
      const { uid } = claim.metadata;
      const refused =
        this.#refusalOf(key, claimCreationIn(name), uid) ?? this.#refusalOf(key, uncertainCreationIn(name), uid);
      return refused === undefined ? "unprepared" : { refused };
    }
    const owner = claimOwner(copy, claim);
    if (owner === undefined) {
      return {
        refused: `${what} is there without the annotation ${OWNER_ANNOTATION}, so Legation cannot tell for which claim of the host it was made; delete it there if its data is of no use`,
      };
    }
    if (owner !== claim.metadata.uid) {
      return { refused: `${what} is made there when an earlier one of that name has gone` };
    }
    if (copy.metadata.deletionTimestamp !== undefined) return { refused: `${what} is being deleted there` };
    return clusterOf(claim) === name ? "prepared" : "unprepared";
  }

  #homeOf(key: ObjectKey, claim: Stored<PersistentVolumeClaim>): string | undefined {
    const written = clusterOf(claim);
    if (written !== undefined) return written;
    const { uid } = claim.metadata;
    const holder = this.#options.registry.members().find((member) => {
      const copy = this.#copyIn(member, key);
      return copy !== undefined && claimOwner(copy, claim) === uid;
    });
    const wanted = this.#wanted.get(key);
    return holder?.name ?? (wanted?.uid === uid ? wanted.member : undefined);
  }

  #copyIn(member: Member, key: ObjectKey): Stored<PersistentVolumeClaim> | undefined {
    const { namespace = "", name } = objectRef(key);
    return this.#copies.of(member, KIND, namespace, name);
  }

  #start(): void {
    if (this.#started) return;
    this.#started = true;
    this.#claims.start();
  }

  #onClaim(key: ObjectKey): void {
    this.#loop.enqueue(key);
    this.#wake(key);
  }

  #wake(key: ObjectKey): void {
    for (const proxy of this.#waiting.of(key)) this.#options.events.emit("needs", proxy);
  }

  #wakeAll(): void {
    for (const key of this.#waiting.values()) this.#onClaim(key);
  }

  #onClaimsRead(): void {
    this.#wakeAll();
    for (const member of this.#options.registry.members()) this.onConnection(member);
  }

  #onRefused(key: ObjectKey, write: string, message: string, hold: Hold): void {
    const wanted = this.#wanted.get(key);
    const isOfWanted = wanted !== undefined && write === claimCreationIn(wanted.member) && hold.content === wanted.uid;
    if (isOfWanted) this.#wanted.delete(key);
    this.#guard.refuse(key, write, { message }, hold);
    this.#onClaim(key);
  }

  /** The create is retried meanwhile. */
  #onUncertain(key: ObjectKey, uid: string, member: string, message: string): void {
    const why = { message, dedupe: withoutAmounts(message) };
    const hold = { content: uid, holdMs: REFUSED_FOR_MS };
    // Enqueuing the claim would cut the backoff of the create short.
    if (this.#guard.refuse(key, uncertainCreationIn(member), why, hold)) this.#wake(key);
  }

  #refusalOf(key: ObjectKey, write: string, uid: string): string | undefined {
    if (this.#guard.mayWrite(key, write, uid)) return undefined;
    return this.#guard.get(key, write)?.refusal?.why.message;
  }

  #observe(key: ObjectKey): Observed | undefined {
    const { registry, identity, restoredHost } = this.#options;
    // Until the host's claims are read, every member's claim would look orphaned.
    if (!this.#claims.store.synced) return undefined;
    const claim = this.#claims.store.get(key);
    const usable = (member: Member): boolean => member.reachable && this.#copies.read(member);
    const copies = registry.members().flatMap((member) => {
      const copy = this.#copyIn(member, key);
      if (copy === undefined) return [];
      const isOrphan = claimOwner(copy, claim) !== claim?.metadata.uid;
      const held = isOrphan && restoredHost.keeps(member.name, "a claim that the host does not know", copy.metadata);
      return [{ member: member.name, usable: usable(member), held, claim: copy }];
    });
    if (claim === undefined) {
      this.#wanted.delete(key);
      if (copies.length === 0) {
        this.#guard.forget(key);
        this.#executor.forget(key);
        return undefined;
      }
    }
    if (claim !== undefined && clusterOf(claim) !== undefined) this.#wanted.delete(key);
    const home = claim === undefined ? undefined : this.#homeOf(key, claim);
    const member = home === undefined ? undefined : registry.member(home);
    if (member !== undefined) this.#copies.need(member, KIND);
    const classes = member?.cluster.spec.storageClasses;
    const heldWrites = this.#guard.of(key);
    return {
      host: identity,
      ...(claim === undefined ? {} : { claim }),
      copies,
      ...(home === undefined ? {} : { home }),
      usable: member !== undefined && usable(member),
      ...defined({ classes, heldWrites }),
    };
  }
}
