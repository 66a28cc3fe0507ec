import { SHARES_ANNOTATION } from "../../../api/keys.ts";
import type { Job, ObjectKey, Stored } from "../../../api/kubernetes.ts";
import { setField } from "../../../copies/copy-metadata.ts";
import { type JobShare, sharesRecord } from "../../../copies/job-shares.ts";
import { WHOLE_JOB } from "../../../copies/jobs.ts";
import type { ActionContext, Expectation } from "../../../runtime/controller.ts";
import {
  SourceWriter,
  type SourceWriterOptions,
  withFinalizer,
  withoutFinalizer,
} from "../../copying/source-writer.ts";
import { type Action, LOSS, type Observed, type Shown, STATUS, shownContent } from "./model.ts";

export interface ExecutorOptions extends SourceWriterOptions {
  /** Called when a status was sent, whether the host took it or not. */
  readonly onStatus: (key: ObjectKey, shown: Shown) => void;
  /** Called when no member takes a Job. */
  readonly onWaiting: () => void;
}

type Done = Promise<Expectation<Observed> | undefined>;
type Context = ActionContext<ObjectKey>;
type ActionOf<Type extends Action["type"]> = Extract<Action, { readonly type: Type }>;

/** Carries out the writes for whole Jobs on the host. */
export class Executor {
  readonly #options: ExecutorOptions;
  readonly #writer: SourceWriter<Job>;

  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#writer = new SourceWriter(WHOLE_JOB, "the Job's status", options);
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
        this.#writer.tell(action.job, "NotPlaced", action.message);
        this.#options.onWaiting();
        return undefined;
    }
  }

  async #record({ job, shares, before }: ActionOf<"record">, { signal }: Context): Done {
    if (before !== undefined && (await this.#writer.hasCopy(job, before, signal))) return undefined;
    const { resourceVersion } = job.metadata;
    const metadata = { resourceVersion, annotations: sharesRecord(shares), finalizers: withFinalizer(job.metadata) };
    const outcome = await this.#writer.patch(job, { type: "merge", body: { metadata } }, { signal });
    if (outcome === "done") this.#writer.tell(job, "Placed", placedMessage(shares), "Normal");
    return changedSince(job);
  }

  /** Writes the status, and in the same request the record of the shares that it sums up. */
  async #writeStatus(
    job: Stored<Job>,
    shown: Shown,
    { write, ...context }: Context & { readonly write: typeof STATUS | typeof LOSS },
  ): Done {
    const { key, signal } = context;
    const version = shownContent(shown);
    // Each end of a lost Job has another time, and any is refused.
    const content = write === STATUS ? { content: version } : {};
    const body = [
      { op: "test", path: "/metadata/uid", value: job.metadata.uid },
      { op: "add", path: "/status", value: shown.status },
      ...recordPatch(job, shown.shares),
    ];
    const outcome = await this.#writer.sendStatus(job, { write, version, ...content }, context, () =>
      this.#writer.patch(job, { type: "json", body }, { signal, subresource: "status", isQuiet: true }),
    );
    if (outcome === "moved") return changedSince(job);
    this.#options.onStatus(key, shown);
    return outcome === "sent" ? changedSince(job) : () => true;
  }

  async #fail({ job, member, isGone, shown }: ActionOf<"fail">, context: Context): Done {
    if (!isGone && (await this.#writer.hasCopy(job, member, context.signal))) return undefined;
    return this.#writeStatus(job, shown, { ...context, write: LOSS });
  }

  async #release({ job, members }: ActionOf<"release">, context: Context): Done {
    if (!(await this.#writer.confirmAbsence(job, members, context))) return undefined;
    const { resourceVersion } = job.metadata;
    const metadata = { resourceVersion, finalizers: withoutFinalizer(job.metadata) };
    await this.#writer.patch(job, { type: "merge", body: { metadata } }, { signal: context.signal });
    return changedSince(job);
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

function changedSince({ metadata: { resourceVersion } }: Stored<Job>): Expectation<Observed> {
  return ({ job }) => job.metadata.resourceVersion !== resourceVersion;
}
