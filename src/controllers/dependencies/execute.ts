import type { Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { DependencyObject } from "../../copies/dependencies.ts";
import type { Resource } from "../../kube/resources.ts";
import { isClass } from "../../pods/dependencies.ts";
import type { ActionContext, Shown } from "../../runtime/controller.ts";
import { Contests } from "../copying/contests.ts";
import { CopyWriter, type CopyWriterOptions } from "../copying/copy-writer.ts";
import { type OfVersion, REFUSED_FOR_MS, refusedVersion, restMsAfter } from "../copying/failures.ts";
import { inMember } from "../copying/in-member.ts";
import { RESOURCES } from "./digest.ts";
import { foreignMessage, isUsedInPlace } from "./in-place.ts";
import { type Action, type CopyKey, copyRef, type Observed } from "./model.ts";
import { isUsedByOtherHost } from "./other-hosts.ts";

export interface ExecutorOptions extends Omit<CopyWriterOptions<CopyKey>, "onStays"> {
  readonly registry: Registry;
  /** Pods that wait for the copy shall know that they do so in vain, or may hope again. */
  readonly onRefusal: (key: CopyKey) => void;
}

/** Why a member has no copy. */
export interface Refusal extends OfVersion {
  readonly message: string;
  /** Epoch ms. */
  readonly until: number;
  /** What is there in its place is used as it is. */
  readonly inPlace: boolean;
}

type Context = ActionContext<CopyKey>;
type Result = Promise<Shown<Observed> | undefined>;
type ActionOf<Type extends Action["type"]> = Extract<Action, { readonly type: Type }>;

// Nobody waits for this one.
const IN_PLACE_FOR_MS = 10 * 60_000;
const KEPT_FOR_MS = 10 * 60_000;

/** Carries out the dependency controller's writes, and remembers what members refused. */
export class Executor {
  readonly #options: ExecutorOptions;
  readonly #refusals = new Map<CopyKey, Refusal>();
  readonly #contests: Contests<CopyKey>;
  readonly #writer: CopyWriter<CopyKey>;
  /** Classes that pods of another host use, and until when they are kept; epoch ms. */
  readonly #kept = new Map<CopyKey, number>();

  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#contests = new Contests(options.clock);
    this.#writer = new CopyWriter({ ...options, onStays: options.onRefusal });
  }

  /** Until when a copy that somebody else keeps changing is left as it is. */
  contestedUntil(key: CopyKey, sourceVersion: string): number | undefined {
    return this.#contests.until(key, sourceVersion);
  }

  /** What was refused in a member. */
  refusedIn(member: string): CopyKey[] {
    return [...this.#refusals.keys()].filter((key) => copyRef(key).member === member);
  }

  /** Why the member did not take the copy when it was last tried. */
  refusal(key: CopyKey): Refusal | undefined {
    return this.#refusals.get(key);
  }

  /** What was there in the copy's place, and was used as it is, has gone: true when that was believed until now. */
  missInPlace(key: CopyKey): boolean {
    return this.#refusals.get(key)?.inPlace === true && this.#refusals.delete(key);
  }

  /** Until when a class is kept since pods of another host use it; epoch ms. */
  keptUntil(key: CopyKey): number | undefined {
    const until = this.#kept.get(key);
    return until !== undefined && this.#options.clock.now() < until ? until : undefined;
  }

  /** Whether the copy, which is there, is on its way out. */
  isLeaving(key: CopyKey, copy: Stored<DependencyObject>): boolean {
    return this.#writer.leaving(key, [copy]).has(copy.metadata.uid);
  }

  /** Nothing is left of the copy, and nobody wants one. */
  forget(key: CopyKey): void {
    this.#refusals.delete(key);
    this.#contests.forget(key);
    this.#writer.forget(key);
    this.#kept.delete(key);
  }

  /** Does one action; the result says when the stores show it. Rejects with KubeError. */
  execute(action: Action, context: Context): Result {
    return inMember(this.#options.registry, action.ref.member, async (member) => {
      switch (action.type) {
        case "create":
          return this.#create(member, action, context);
        case "patch":
          return this.#patch(member, action, context);
        case "delete":
          return this.#delete(member, action, context);
        case "reconsider":
          this.#refusals.delete(context.key);
          this.#options.onRefusal(context.key);
          return () => true;
      }
    });
  }

  /** Counts only writes that the member has taken: a refused one does not show that somebody else changes the copy. */
  #note({ ref, sourceVersion }: ActionOf<"create" | "patch">, { key, log }: Context): void {
    this.#contests.noteAndTell(key, sourceVersion, ref, log);
  }

  async #create(member: Member, action: ActionOf<"create">, context: Context): Result {
    const { ref, object, sourceVersion } = action;
    const { key, signal, log } = context;
    const { kind, name } = ref;
    const resource: Resource<DependencyObject> = RESOURCES[kind];
    const made = await this.#writer.make({ member, resource, ref, object, signal });
    switch (made.type) {
      case "made":
      case "found":
        if (made.type === "made") this.#note(action, context);
        this.#refusals.delete(key);
        return ({ copy: shown }) => shown?.metadata.uid === made.uid;
      case "gone":
        return () => true;
      case "foreign": {
        const inPlace = isUsedInPlace(kind, name);
        const restMs = inPlace ? IN_PLACE_FOR_MS : REFUSED_FOR_MS;
        return this.#refuse(key, { message: foreignMessage(ref), inPlace }, restMs);
      }
      case "refused":
      case "failing": {
        const message = `its API server refused ${kind} ${name}, which the pod needs: ${made.detail}`;
        log.info(message);
        const refusal = { message, inPlace: false, ...refusedVersion(made, sourceVersion) };
        return this.#refuse(key, refusal, restMsAfter(made));
      }
    }
  }

  async #patch(member: Member, action: ActionOf<"patch">, context: Context): Result {
    const { ref, patch, version, sourceVersion } = action;
    const { key, signal, log } = context;
    const resource: Resource<DependencyObject> = RESOURCES[ref.kind];
    const changed = await this.#writer.change({ member, resource, ref, patch, signal });
    if (changed.type === "refused" || changed.type === "failing") {
      const message = `its API server refused the change of ${ref.kind} ${ref.name}, which the pod needs: ${changed.detail}`;
      log.info(message);
      const refusal = { message, inPlace: false, ...refusedVersion(changed, sourceVersion) };
      return this.#refuse(key, refusal, restMsAfter(changed));
    }
    if (changed.type === "changed") {
      this.#note(action, context);
      this.#refusals.delete(key);
    }
    return ({ copy }) => copy?.metadata.resourceVersion !== version;
  }

  async #delete(member: Member, { ref, uid, resourceVersion }: ActionOf<"delete">, { key, signal }: Context): Result {
    const { hostId, clock } = this.#options;
    if (isClass(ref.kind) && (await isUsedByOtherHost(member, ref, hostId, signal))) {
      this.#kept.set(key, clock.now() + KEPT_FOR_MS);
      this.#options.onRefusal(key);
      return () => true;
    }
    const copy = { ...ref, uid, resourceVersion };
    await this.#writer.delete(key, { member, resource: RESOURCES[ref.kind], copy, signal });
    return ({ copy }) => copy?.metadata.resourceVersion !== resourceVersion;
  }

  #refuse(key: CopyKey, refusal: Omit<Refusal, "until">, restMs: number): Shown<Observed> {
    this.#refusals.set(key, { ...refusal, until: this.#options.clock.now() + restMs });
    this.#options.onRefusal(key);
    return () => true;
  }
}
