import { SHARES_ANNOTATION, WHOLE_FINALIZER } from "../../api/keys.ts";
import type { Job, ObjectKey, Stored } from "../../api/kubernetes.ts";
import type { Registry } from "../../clusters/registry.ts";
import { setField } from "../../copies/copy-metadata.ts";
import { type JobShare, sharesRecord } from "../../copies/job-shares.ts";
import { WHOLE_JOB } from "../../copies/jobs.ts";
import { toCopy } from "../../copies/kind.ts";
import type { ClusterClient, Patch, WriteOptions } from "../../kube/client.ts";
import { isKubeError, isLastingRefusal } from "../../kube/errors.ts";
import { withoutAmounts } from "../../kube/messages.ts";
import { jobs } from "../../kube/resources.ts";
import type { HostIdentity } from "../../pods/delegate.ts";
import type { ActionContext, Expectation } from "../../runtime/controller.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import { referenceTo } from "../../runtime/kube-event.ts";
import type { WriteGuard } from "../../runtime/write-guard.ts";
import { findCopy, inMember } from "../copying/writer.ts";
import { type Action, LOSS, type Observed, type Shown, STATUS, shownContent } from "./model.ts";

export interface ExecutorOptions {
  readonly host: ClusterClient;
  readonly identity: HostIdentity;
  readonly registry: Pick<Registry, "member">;
  readonly recorder: Pick<EventRecorder, "record">;
  readonly guard: WriteGuard<ObjectKey>;
  /** Called when a status was sent, whether the host took it or not. */
  readonly onStatus: (key: ObjectKey, shown: Shown) => void;
  /** Called when no member takes a Job. */
  readonly onWaiting: () => void;
}

const CONTESTED_FOR_MS = 10 * 60_000;

type Done = Promise<Expectation<Observed> | undefined>;
type Context = ActionContext<ObjectKey>;
type ActionOf<Type extends Action["type"]> = Extract<Action, { readonly type: Type }>;

/** Carries out the writes for whole Jobs on the host. */
export class Executor {
  readonly #options: ExecutorOptions;

  constructor(options: ExecutorOptions) {
    this.#options = options;
  }

  /** Rejects with KubeError. */
  async execute(action: Action, context: Context): Done {
    switch (action.type) {
      case "record":
        return this.#record(action, context);
      case "status":
        return this.#writeStatus(action.job, action.shown, { ...context, write: STATUS });
      case "fail":
        return this.#fail(action, context);
      case "release":
        return this.#release(action, context);
      case "report":
        this.#tell(action.job, "NotPlaced", action.message);
        this.#options.onWaiting();
        return undefined;
    }
  }

  async #record({ job, shares, before }: ActionOf<"record">, { signal }: Context): Done {
    if (before !== undefined && (await this.#hasCopy(job, before, signal))) return undefined;
    const { resourceVersion, finalizers = [] } = job.metadata;
    const held = finalizers.includes(WHOLE_FINALIZER) ? finalizers : [...finalizers, WHOLE_FINALIZER];
    const metadata = { resourceVersion, annotations: sharesRecord(shares), finalizers: held };
    const isWritten = await this.#patch(job, { type: "merge", body: { metadata } }, { signal });
    if (isWritten) this.#tell(job, "Placed", placedMessage(shares), "Normal");
    return changedSince(job);
  }

  /** Writes the status, and in the same request the record of the shares that it sums up. */
  async #writeStatus(
    job: Stored<Job>,
    shown: Shown,
    { key, signal, log, write }: Context & { readonly write: typeof STATUS | typeof LOSS },
  ): Done {
    const { guard, onStatus } = this.#options;
    const version = shownContent(shown);
    // Each end of a lost Job has another time, and any is refused.
    const content = write === STATUS ? { content: version } : {};
    const body = [
      { op: "test", path: "/metadata/uid", value: job.metadata.uid },
      { op: "add", path: "/status", value: shown.status },
      ...recordPatch(job, shown.shares),
    ];
    try {
      const isWritten = await this.#patch(job, { type: "json", body }, { signal, subresource: "status" });
      if (!isWritten) return changedSince(job);
    } catch (error) {
      if (!isLastingRefusal(error)) throw error;
      onStatus(key, shown);
      const message = `this cluster refuses the Job's status: ${error.detail}`;
      if (guard.refuse(key, write, { message, dedupe: message }, content)) this.#tell(job, "StatusRefused", message);
      return () => true;
    }
    onStatus(key, shown);
    if (guard.written(key, write, { version }, { holdMs: CONTESTED_FOR_MS })) {
      const message = "another manager keeps changing the Job's status: it is left as it is for ten minutes";
      log.warn(message);
      this.#tell(job, "StatusContested", message);
    }
    return changedSince(job);
  }

  async #fail({ job, member, shown }: ActionOf<"fail">, context: Context): Done {
    if (await this.#hasCopy(job, member, context.signal)) return undefined;
    return this.#writeStatus(job, shown, { ...context, write: LOSS });
  }

  async #release({ job, members }: ActionOf<"release">, { signal }: Context): Done {
    for (const member of members) if (await this.#hasCopy(job, member, signal)) return undefined;
    const { resourceVersion, finalizers = [] } = job.metadata;
    const others = finalizers.filter((finalizer) => finalizer !== WHOLE_FINALIZER);
    await this.#patch(job, { type: "merge", body: { metadata: { resourceVersion, finalizers: others } } }, { signal });
    return changedSince(job);
  }

  /** Asks the member itself: a create whose response was lost may have been done since. */
  async #hasCopy(job: Stored<Job>, name: string, signal: AbortSignal): Promise<boolean> {
    const { identity, registry } = this.#options;
    const object = toCopy(WHOLE_JOB, job, identity);
    const ref = refOf(job);
    const has = await inMember(registry, name, (member) =>
      findCopy({ member, resource: jobs, ref, object, hostId: identity.id, signal }),
    );
    return has ?? false;
  }

  /** Returns false if the Job has changed since, or is gone, which is an event. */
  async #patch(job: Stored<Job>, patch: Patch, options: WriteOptions): Promise<boolean> {
    try {
      await this.#options.host.patch(jobs, refOf(job), patch, { ...options, metadataOnly: true });
      return true;
    } catch (error) {
      if (isKubeError(error, "Conflict", "NotFound")) return false;
      const isStatus = options.subresource !== undefined;
      if (isLastingRefusal(error) && !isStatus)
        this.#tell(job, "Refused", `this cluster refuses a change: ${error.detail}`);
      throw error;
    }
  }

  #tell(job: Stored<Job>, reason: string, message: string, type: "Normal" | "Warning" = "Warning"): void {
    const dedupe = `${job.metadata.uid}/${withoutAmounts(message)}`;
    this.#options.recorder.record(referenceTo(jobs, job), { reason, message, type, dedupe });
  }
}

/** Returns the patch of a divided Job's record. It was made for this version: a share may have moved since. */
function recordPatch({ metadata: { resourceVersion } }: Stored<Job>, shares: readonly JobShare[]): object[] {
  const record = sharesRecord(shares)[SHARES_ANNOTATION];
  if (record === undefined) return [];
  const annotation = `/metadata/annotations/${SHARES_ANNOTATION.replace("/", "~1")}`;
  return [setField("/metadata/resourceVersion", resourceVersion), setField(annotation, record)];
}

function placedMessage(shares: readonly JobShare[]): string {
  const [first] = shares;
  if (first?.part === undefined) return `${first?.member ?? ""} has the Job`;
  const parts = shares.map(({ member, part }) => `${member} ${part?.completions ?? 0}`);
  return `completions by member: ${parts.join(", ")}`;
}

function refOf({ metadata: { namespace = "", name } }: Stored<Job>): {
  readonly namespace: string;
  readonly name: string;
} {
  return { namespace, name };
}

function changedSince({ metadata: { resourceVersion } }: Stored<Job>): Expectation<Observed> {
  return ({ job }) => job.metadata.resourceVersion !== resourceVersion;
}
