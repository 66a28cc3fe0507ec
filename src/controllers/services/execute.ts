import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { Registry } from "../../clusters/registry.ts";
import {
  patchWithoutTrafficDistribution,
  refusesTrafficDistribution,
  type ServiceObject,
  withoutTrafficDistribution,
} from "../../copies/services.ts";
import { type Resource, services } from "../../kube/resources.ts";
import type { ActionContext, Shown } from "../../runtime/controller.ts";
import { referenceTo } from "../../runtime/event.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import { Contests } from "../copying/contests.ts";
import { CopyWriter, type CopyWriterOptions } from "../copying/copy-writer.ts";
import { isOfEarlier, type OfVersion, REFUSED_FOR_MS, refusedVersion, restMsAfter } from "../copying/failures.ts";
import { inMember } from "../copying/in-member.ts";
import { type LastTold, toldNow } from "../told-for.ts";
import { Exports } from "./exports.ts";
import { type Action, type ActionOf, type CopyKey, type CopyRef, copyRef, type Observed, settlement } from "./model.ts";
import { RESOURCES } from "./sources.ts";

export interface ExecutorOptions extends Omit<CopyWriterOptions<CopyKey>, "onStays"> {
  readonly recorder: EventRecorder;
  readonly hostName: string;
  readonly registry: Registry;
  /** Pods that wait for the copy need not wait any more. */
  readonly onRefusal: (ref: CopyRef) => void;
  /** The member has a ServiceExport. */
  readonly onExported: (member: Member) => void;
}

type Context = ActionContext<CopyKey>;
type Result = Promise<Shown<Observed> | undefined>;

/** Why a member has no copy like its source. */
interface Refused extends OfVersion {
  readonly ref: CopyRef;
  readonly source: Stored<KubeObject>;
  readonly message: string;
  /** How long the member is not asked again. */
  readonly restMs: number;
}

interface Refusal extends OfVersion {
  /** Epoch ms. */
  readonly until: number;
  readonly told: LastTold;
}

/** Carries out the service controller's writes, and remembers what members refused. */
export class Executor {
  readonly #options: ExecutorOptions;
  readonly #exports: Exports;
  readonly #refusals = new Map<CopyKey, Refusal>();
  readonly #settled = new Map<CopyKey, string>();
  readonly #contests: Contests<CopyKey>;
  readonly #writer: CopyWriter<CopyKey>;

  constructor(options: ExecutorOptions) {
    this.#options = options;
    const { hostId: id, hostName: name, recorder, clock } = options;
    this.#contests = new Contests(clock);
    this.#writer = new CopyWriter({ ...options, onStays: (key) => options.onRefusal(copyRef(key)) });
    this.#exports = new Exports({
      host: { id, name },
      recorder,
      clock,
      onMade: options.onExported,
    });
  }

  /** Whether the member did not take the copy when it was last tried. */
  isRefused(key: CopyKey): boolean {
    return this.#refusals.has(key);
  }

  /** Until when the member is not asked for the copy of such a source again. */
  refusal(key: CopyKey, source: Stored<KubeObject>): { readonly until: number } | undefined {
    const refusal = this.#refusals.get(key);
    return refusal === undefined || isOfEarlier(refusal, versionOf(source)) ? undefined : refusal;
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
  execute(action: Action, context: Context): Result {
    return inMember(this.#options.registry, action.ref.member, (member) => {
      switch (action.type) {
        case "create":
          return this.#create(member, action, context);
        case "patch":
          return this.#patch(member, action, context);
        case "delete":
          return this.#delete(member, action, context);
        case "export":
          return this.#exports.make(member, action, context);
        case "unexport":
          return this.#exports.remove(member, action, context);
      }
    });
  }

  async #create(member: Member, { ref, object, source }: ActionOf<"create">, context: Context): Result {
    const { kind, name } = ref;
    const { key, signal, log } = context;
    const instead = (detail: string): ServiceObject | undefined =>
      refusesTrafficDistribution(detail) ? withoutTrafficDistribution(object) : undefined;
    const made = await this.#writer.make({ member, resource: resourceOf(ref), ref, object, instead, signal });
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
        const of = refusedVersion(made, versionOf(source));
        return this.#refuse(context, { ref, source, message, restMs: restMsAfter(made), ...of });
      }
    }
  }

  async #patch(member: Member, { ref, patch, copy, source }: ActionOf<"patch">, context: Context): Result {
    const { key, signal } = context;
    const { resourceVersion } = copy.metadata;
    const instead = (detail: string): object[] | undefined =>
      refusesTrafficDistribution(detail) ? patchWithoutTrafficDistribution(patch) : undefined;
    const changed = await this.#writer.change({ member, resource: resourceOf(ref), ref, patch, instead, signal });
    if (changed.type === "refused" || changed.type === "failing") {
      const message = `its API server refused the change of the ${ref.kind}: ${changed.detail}`;
      const of = refusedVersion(changed, versionOf(source));
      return this.#refuse(context, { ref, source, message, restMs: restMsAfter(changed), ...of });
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

  async #delete(member: Member, { ref, copy }: ActionOf<"delete">, { key, signal }: Context): Result {
    const { resourceVersion } = copy.metadata;
    await this.#writer.delete(key, { member, resource: resourceOf(ref), copy: copy.metadata, signal });
    return ({ copy: shown }) => shown?.metadata.resourceVersion !== resourceVersion;
  }

  #refuse({ key, log }: Context, { ref, source, message, restMs, ...of }: Refused): Shown<Observed> {
    const now = this.#options.clock.now();
    const last = this.#refusals.get(key)?.told;
    const told = toldNow(message, last, now);
    this.#refusals.set(key, { until: now + restMs, told, ...of });
    this.#options.onRefusal(ref);
    if (told !== last) {
      log.info(message);
      const about = referenceTo(resourceOf(ref), source);
      this.#options.recorder.record(about, { reason: "NotInMember", message: `${ref.member}: ${message}` });
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
