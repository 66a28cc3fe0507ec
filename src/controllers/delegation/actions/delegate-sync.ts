import { defined } from "../../../api/defined.ts";
import { type ObjectKey, objectRef, type Pod, type Stored } from "../../../api/kubernetes.ts";
import type { Member } from "../../../clusters/member.ts";
import { ownedKeys } from "../../../copies/owned-keys.ts";
import { ignoring, isKubeError, isLastingRefusal, isRefusal } from "../../../kube/errors.ts";
import { pods } from "../../../kube/resources.ts";
import type { KeysOfMaps } from "../../../pods/compact-record.ts";
import type { StatusPatch } from "../../../pods/feedback.ts";
import type { ForwardPatch } from "../../../pods/forward-record.ts";
import type { Expectation } from "../../../runtime/controller.ts";
import type { HoldReason } from "../../../runtime/held-writes.ts";
import { FORGET_HELD_FAILURE_MS, WriteGuard } from "../../../runtime/write-guard.ts";
import type { Memories } from "../../../scheduling/memories.ts";
import { RESIZE } from "../../../scheduling/memory.ts";
import type { ActionOf } from "../decision/decision.ts";
import type { View } from "../decision/view.ts";
import { isFutile, type Purpose, statusPurpose, undone } from "../decision/write-purpose.ts";
import type { ActionOptions, Context, Result } from "../options.ts";
import { expectChanged, expectInMember, expectOnProxy, isAtLeast } from "./expectations.ts";
import { forwardRefusal, forwardUndone, isUnknownSubresource, resizeReason } from "./forward-messages.ts";

const atOnce: Expectation<View> = () => true;
const END_FIELDS: ReadonlySet<string> = new Set(["phase", "reason", "message", "conditions"]);

type SyncOptions = Pick<ActionOptions, "host" | "identity" | "registry" | "recorder" | "refusedWrites" | "clock">;

/** Sends the patches that keep proxy and delegate alike, in both directions. */
export class DelegateSync {
  readonly #options: SyncOptions;
  readonly #memories: Memories;
  readonly #guard: WriteGuard<ObjectKey>;

  constructor(options: SyncOptions, memories: Memories) {
    this.#options = options;
    this.#memories = memories;
    this.#guard = new WriteGuard({ clock: options.clock, forgetFailureMs: FORGET_HELD_FAILURE_MS });
  }

  /** Rejects when the delegate has changed since the decision. */
  async forward(action: ActionOf<"forward">, context: Context): Result {
    const member = this.#options.registry.member(action.member);
    if (member === undefined) return undefined;
    return (await this.#send(member, action, context)) ?? atOnce;
  }

  async #send(member: Member, action: ActionOf<"forward">, context: Context): Result {
    const { proxyUid, patch } = action;
    if (!this.#memories.writes.mayWrite(proxyUid, JSON.stringify(patch))) return undefined;
    try {
      return await this.#patchDelegate(member, action, context);
    } catch (error) {
      const refused = forwardRefusal(member.name, patch, error);
      if (refused === undefined) throw error;
      if (isRefusal(error) && this.#guard.failed(context.key, "forward", error) === "transient") throw error;
      // A patch with parts is told once its parts were sent alone.
      if (patch.apart === undefined) {
        const { subresource = patch.body.spec === undefined ? "metadata" : "spec" } = patch;
        const words = { reason: "NotForwarded", message: refused };
        this.#options.refusedWrites.tell(context.key, proxyUid, `forward ${subresource}`, words);
      }
      for (const part of partsOf(patch)) {
        const expectation = await this.#send(member, { ...action, patch: part }, context);
        if (expectation !== undefined) return expectation;
      }
      if (patch.subresource === "resize") this.#noteResizeRefused(proxyUid, patch, error);
      else this.#hold(proxyUid, patch, "Refused");
      return undefined;
    }
  }

  async #patchDelegate(member: Member, action: ActionOf<"forward">, context: Context): Result {
    const { key, signal } = context;
    const { subresource, body } = action.patch;
    const { resourceVersion } = action;
    const { uid } = body.metadata;
    const options = { signal, metadataOnly: true, ...defined({ subresource }) };
    // The precondition keeps a late write from undoing later ones.
    const metadata = await this.#withRemovals(member, action.patch, context);
    const conditional = { ...body, metadata: { ...metadata, resourceVersion } };
    try {
      const written = await member.client.patch(
        pods,
        objectRef(key),
        { type: "strategic", body: conditional },
        options,
      );
      this.#noteEffect(action.proxyUid, action, written);
      const { purpose } = action;
      if (purpose !== undefined && this.#isUndone(action.proxyUid, purpose)) {
        const message = forwardUndone(member.name, action.patch, purpose);
        context.log.warn({ member: member.name }, message);
        this.tellOnce(key, action.proxyUid, "NotForwarded", message);
      }
      if (subresource === "resize") this.#memories.writes.done(action.proxyUid, RESIZE);
      return expectInMember(
        member.name,
        (pod) => pod.metadata.uid !== uid || isAtLeast(pod, written.metadata.resourceVersion),
      );
    } catch (error) {
      member.noteFailure(error);
      const isGone = isKubeError(error, "NotFound") && !isUnknownSubresource(error);
      if (!isGone) throw error;
      return expectChanged(member.name, uid, resourceVersion);
    }
  }

  /** Removes keys that the proxy lost, where the record is too long to name them. */
  async #withRemovals(
    { client }: Member,
    { body: { metadata }, ifOwned }: ForwardPatch,
    { key, signal }: Context,
  ): Promise<ForwardPatch["body"]["metadata"]> {
    if (ifOwned === undefined || ifOwned.labels.length + ifOwned.annotations.length === 0) return metadata;
    const there = await client.find(pods, objectRef(key), { signal });
    const owned = ownedKeys(there, `legation-${this.#options.identity.id}`);
    const removed = (map: keyof KeysOfMaps): Record<string, null> =>
      Object.fromEntries(ifOwned[map].flatMap((name) => (owned[map].includes(name) ? [[name, null]] : [])));
    return {
      ...metadata,
      labels: { ...metadata.labels, ...removed("labels") },
      annotations: { ...metadata.annotations, ...removed("annotations") },
    };
  }

  /** Records an event for the author, unless the last one says the same and has not expired. */
  tellOnce(key: ObjectKey, proxyUid: string, reason: string, message: string): void {
    const dedupe = `${proxyUid} ${reason} ${message}`;
    this.#options.recorder.record({ ...objectRef(key), uid: proxyUid }, { reason, message, dedupe });
  }

  /** Writes the delegate's status to the proxy. Of an end that the host refuses, phase and reason are tried alone. */
  async status(action: ActionOf<"status">, context: Context): Result {
    const { key, signal } = context;
    const { patch, resourceVersion } = action;
    const { uid } = patch.metadata;
    const purpose = statusPurpose(patch);
    if (isFutile(this.#memories.of(uid), patch, purpose, this.#options.clock.now())) return undefined;
    const options = { subresource: "status", signal, metadataOnly: true };
    const body = { ...patch, metadata: { uid, resourceVersion } };
    try {
      const written = await this.#options.host.patch(pods, objectRef(key), { type: "strategic", body }, options);
      this.#noteEffect(uid, action, written);
      if (this.#isUndone(uid, purpose)) this.#tellStatusUndone(uid, purpose, context);
      return expectOnProxy(uid, (proxy) => isAtLeast(proxy, written.metadata.resourceVersion));
    } catch (error) {
      if (isKubeError(error, "NotFound")) return undefined;
      if (!isLastingRefusal(error)) throw error;
      this.#noteRefused(action, error.detail, context);
      const end = endOf(patch);
      return end === undefined ? undefined : this.status({ ...action, patch: end }, context);
    }
  }

  /** An invalid status, or one that a policy denies, must hold up no other write of the pod. */
  #noteRefused(action: ActionOf<"status">, detail: string, { key, log }: Context): void {
    const { uid } = action.patch.metadata;
    const message = `this cluster refuses the status that the member tells: ${detail}`;
    this.#hold(uid, action.patch, "Refused");
    log.warn(message);
    this.#options.refusedWrites.tell(key, uid, "status", { reason: "StatusRefused", message });
  }

  #noteEffect(proxyUid: string, action: ActionOf<"status" | "forward">, { metadata }: Stored<Pod>): void {
    if (metadata.resourceVersion === action.resourceVersion) this.#hold(proxyUid, action.patch, "NoEffect");
  }

  /** Counts the write. Reports whether another writer undoes it so often that it is held back. */
  #isUndone(proxyUid: string, purpose: Purpose): boolean {
    return this.#memories.writes.written(proxyUid, undone(purpose), purpose.wanted);
  }

  #tellStatusUndone(proxyUid: string, { parts }: Purpose, { key, log }: Context): void {
    const what = `the status that the member tells (${parts.join(", ")})`;
    const message = `another client in this cluster keeps undoing ${what}; it is left so for five minutes`;
    log.warn(message);
    this.tellOnce(key, proxyUid, "StatusUndone", message);
  }

  #noteResizeRefused(proxyUid: string, { body }: ForwardPatch, error: unknown): void {
    const why = { reason: resizeReason(error), message: isKubeError(error) ? error.detail : String(error) };
    this.#memories.writes.refuse(proxyUid, RESIZE, why, { content: JSON.stringify(body.spec) });
  }

  #hold(proxyUid: string, patch: StatusPatch | ForwardPatch, reason: HoldReason): void {
    this.#memories.writes.hold(proxyUid, JSON.stringify(patch), reason);
  }
}

function endOf({ metadata, status }: StatusPatch): StatusPatch | undefined {
  if (status.phase !== "Succeeded" && status.phase !== "Failed") return undefined;
  const end = Object.entries(status).filter(([field]) => END_FIELDS.has(field));
  return end.length === Object.keys(status).length ? undefined : { metadata, status: Object.fromEntries(end) };
}

function partsOf({ subresource, body, apart = [] }: ForwardPatch): readonly ForwardPatch[] {
  const { spec, ...rest } = body;
  return apart.length > 0 || subresource !== undefined || spec === undefined ? apart : [{ body: rest }];
}

/** Writes to the proxy. Rejects on a conflict, so that the backoff decides when to look again. */
export async function patchProxy(proxyUid: string, write: () => Promise<Pod>): Result {
  const written = await ignoring(write(), "NotFound");
  const version = written?.metadata?.resourceVersion ?? "0";
  return written && expectOnProxy(proxyUid, (proxy) => isAtLeast(proxy, version));
}
