import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { MemberNamespaces } from "../../clusters/namespaces.ts";
import type { Registry } from "../../clusters/registry.ts";
import {
  patchWithoutTrafficDistribution,
  refusesTrafficDistribution,
  type ServiceObject,
  withoutTrafficDistribution,
} from "../../copies/services.ts";
import { apiVersionOf, type Resource, services } from "../../kube/resources.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ActionContext, Shown } from "../../runtime/controller.ts";
import type { AuthorEvents } from "../author-events.ts";
import { type Changed, changeCopy } from "../copying/change-copy.ts";
import { Contests } from "../copying/contests.ts";
import { CopyWriter } from "../copying/copy-writer.ts";
import { Failures, restMsAfter } from "../copying/failures.ts";
import { type Made, makeCopy } from "../copying/make-copy.ts";
import { type LastTold, toldNow } from "../told-for.ts";
import { Exports } from "./exports.ts";
import { type Action, type CopyKey, type CopyRef, copyRef, type Observed, settlement } from "./model.ts";
import { RESOURCES } from "./sources.ts";

export interface ExecutorOptions {
  readonly authorEvents: AuthorEvents;
  readonly hostId: string;
  readonly hostName: string;
  readonly registry: Registry;
  readonly memberNamespaces: MemberNamespaces;
  /** Pods that wait for the copy need not wait any more. */
  readonly onRefusal: (ref: CopyRef) => void;
  /** The member has a ServiceExport. */
  readonly onExported: (member: Member) => void;
  readonly clock: Clock;
}

type Context = ActionContext<CopyKey>;
type Result = Promise<Shown<Observed> | undefined>;
type ActionOf<Type extends Action["type"]> = Extract<Action, { readonly type: Type }>;

// Whoever has an object of that name there may remove it, and a quota may be raised.
const REFUSED_FOR_MS = 60_000;

/** Why a member has no copy like its source. */
interface Refused {
  readonly ref: CopyRef;
  readonly source: Stored<KubeObject>;
  readonly message: string;
  /** How long the member is not asked again. */
  readonly restMs: number;
}

/** Carries out the service controller's writes, and remembers what members refused. */
export class Executor {
  readonly #options: ExecutorOptions;
  readonly #exports: Exports;
  readonly #refusals = new Map<CopyKey, { readonly until: number; readonly told: LastTold }>();
  readonly #settled = new Map<CopyKey, string>();
  readonly #contests: Contests<CopyKey>;
  readonly #writer: CopyWriter<CopyKey>;
  readonly #failures: Failures<CopyKey>;

  constructor(options: ExecutorOptions) {
    this.#options = options;
    const { hostId: id, hostName: name, authorEvents, clock } = options;
    this.#contests = new Contests(clock);
    this.#failures = new Failures(clock);
    this.#writer = new CopyWriter((key) => options.onRefusal(copyRef(key)));
    this.#exports = new Exports({
      host: { id, name },
      authorEvents,
      clock,
      onMade: options.onExported,
    });
  }

  /** Until when the member is not asked for the copy again. */
  refusal(key: CopyKey): { readonly until: number } | undefined {
    return this.#refusals.get(key);
  }

  /** Whether the copy, which is there, is on its way out. */
  isLeaving(key: CopyKey, copy: Stored<KubeObject>): boolean {
    return this.#writer.leaving(key, [copy]).has(copy.metadata.uid);
  }

  /** The versions of source and copy between which the member keeps a difference: no patch is sent again for these. */
  settled(key: CopyKey): string | undefined {
    return this.#settled.get(key);
  }

  /** Until when a copy that somebody else keeps changing is left as it is. */
  contestedUntil(key: CopyKey, source: Stored<KubeObject>): number | undefined {
    return this.#contests.until(key, versionOf(source));
  }

  /** When the ServiceExport beside the copy is to be made next; epoch ms. */
  exportDue(key: CopyKey, copyUid: string): number {
    return this.#exports.due(key, copyUid);
  }

  /** Nothing is left of the copy, and nobody wants one. */
  forget(key: CopyKey): void {
    this.#refusals.delete(key);
    this.#settled.delete(key);
    this.#contests.forget(key);
    this.#writer.forget(key);
    this.#exports.forget(key);
  }

  /** Does one action; the result says when the stores show it. Rejects with KubeError. */
  async execute(action: Action, context: Context): Result {
    const member = this.#options.registry.member(action.ref.member);
    if (member === undefined) return undefined;
    try {
      switch (action.type) {
        case "create":
          return await this.#create(member, action, context);
        case "patch":
          return await this.#patch(member, action, context);
        case "delete":
          return await this.#delete(member, action, context);
        case "export":
          return await this.#exports.make(member, action, context);
        case "unexport":
          return await this.#exports.remove(member, action, context);
      }
    } catch (error) {
      member.noteFailure(error);
      throw error;
    }
  }

  async #create(member: Member, { ref, object, source }: ActionOf<"create">, context: Context): Result {
    const { kind, name } = ref;
    const { key, signal, log } = context;
    const made = await this.#failures.outlast(key, member, () => this.#make(member, ref, object, signal));
    switch (made.type) {
      case "made":
      case "found":
        if (made.type === "made") this.#contests.noteAndTell(key, versionOf(source), ref, log);
        this.#refusals.delete(key);
        return ({ copy: shown }) => shown?.metadata.uid === made.uid;
      case "gone":
        return () => true;
      case "foreign": {
        const message = `${kind} ${name} is there already and was not made by Legation for this host: pods in ${member.name} see that one`;
        return this.#refuse(context, { ref, source, message, restMs: REFUSED_FOR_MS });
      }
      case "refused":
      case "failing": {
        const message = `its API server refused the ${kind}: ${made.detail}`;
        return this.#refuse(context, { ref, source, message, restMs: restMsAfter(made, REFUSED_FOR_MS) });
      }
    }
  }

  async #make(member: Member, ref: CopyRef, object: ServiceObject, signal: AbortSignal): Promise<Made> {
    const { memberNamespaces: namespaces, hostId } = this.#options;
    const make = (wanted: ServiceObject): Promise<Made> =>
      makeCopy({ member, namespaces, hostId, resource: resourceOf(ref), ref, object: wanted, signal });
    const made = await make(object);
    if (made.type !== "refused" || !refusesTrafficDistribution(made.detail)) return made;
    return make(withoutTrafficDistribution(object));
  }

  async #patch(member: Member, { ref, patch, copy, source }: ActionOf<"patch">, context: Context): Result {
    const { key, signal } = context;
    const { resourceVersion } = copy.metadata;
    const changed = await this.#failures.outlast(key, member, () => this.#change(member, ref, patch, signal));
    if (changed.type === "refused" || changed.type === "failing") {
      const message = `its API server refused the change of the ${ref.kind}: ${changed.detail}`;
      return this.#refuse(context, { ref, source, message, restMs: restMsAfter(changed, REFUSED_FOR_MS) });
    }
    if (changed.type === "changed") {
      // An older member does not know every field: what it has not taken now it will not take the next time.
      this.#settled.set(key, settlement(source, changed.resourceVersion));
      this.#contests.noteAndTell(key, versionOf(source), ref, context.log);
      this.#refusals.delete(key);
      if (changed.resourceVersion === resourceVersion) return undefined;
    }
    return ({ copy: shown }) => shown?.metadata.resourceVersion !== resourceVersion;
  }

  async #change(member: Member, ref: CopyRef, wanted: readonly object[], signal: AbortSignal): Promise<Changed> {
    const change = (patch: readonly object[]): Promise<Changed> =>
      changeCopy({ member, resource: resourceOf(ref), ref, patch, signal });
    const changed = await change(wanted);
    if (changed.type !== "refused" || !refusesTrafficDistribution(changed.detail)) return changed;
    return change(patchWithoutTrafficDistribution(wanted));
  }

  async #delete(member: Member, { ref, copy }: ActionOf<"delete">, { key, signal }: Context): Result {
    const { resourceVersion } = copy.metadata;
    await this.#writer.delete(key, { member, resource: resourceOf(ref), copy: copy.metadata, signal });
    return ({ copy: shown }) => shown?.metadata.resourceVersion !== resourceVersion;
  }

  #refuse({ key, log }: Context, { ref, source, message, restMs }: Refused): Shown<Observed> {
    const now = this.#options.clock.now();
    const last = this.#refusals.get(key)?.told;
    const told = toldNow(message, last, now);
    this.#refusals.set(key, { until: now + restMs, told });
    this.#options.onRefusal(ref);
    if (told !== last) {
      log.info(message);
      const resource = resourceOf(ref);
      const about = { apiVersion: apiVersionOf(resource), kind: resource.kind, ...source.metadata };
      this.#options.authorEvents.tell(about, { reason: "NotInMember", message: `${ref.member}: ${message}` });
    }
    return () => true;
  }
}

function resourceOf({ kind }: CopyRef): Resource<ServiceObject> {
  return RESOURCES.get(kind) ?? services;
}

function versionOf({ metadata: { uid, resourceVersion } }: Stored<KubeObject>): string {
  return `${uid}/${resourceVersion}`;
}
