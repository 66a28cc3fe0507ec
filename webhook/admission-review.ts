import { z } from "zod";

const stringMap = z.record(z.string(), z.string());

/** Metadata that admission reads. Go's encoder writes null for absent fields. */
const metadata = z.object({
  name: z.string().nullish(),
  generateName: z.string().nullish(),
  labels: stringMap.nullish(),
  annotations: stringMap.nullish(),
  finalizers: z.array(z.string()).nullish(),
  deletionTimestamp: z.string().nullish(),
  ownerReferences: z.array(z.object({ kind: z.string(), controller: z.boolean().nullish() })).nullish(),
  managedFields: z.unknown().optional(),
});

const reviewed = z.looseObject({ metadata });

const admissionReview = z.object({
  apiVersion: z.literal("admission.k8s.io/v1"),
  kind: z.literal("AdmissionReview"),
  request: z.object({
    uid: z.string().min(1),
    operation: z.enum(["CREATE", "UPDATE", "DELETE", "CONNECT"]),
    kind: z.object({ group: z.string(), kind: z.string() }),
    namespace: z.string().optional(),
    userInfo: z.object({ username: z.string().optional() }).optional(),
    object: reviewed.nullish(),
    oldObject: reviewed.nullish(),
  }),
});
const identified = z.object({ request: z.object({ uid: z.string().min(1) }) });

export interface AdmissionRequest {
  readonly uid: string;
  readonly operation: "CREATE" | "UPDATE" | "DELETE" | "CONNECT";
  readonly kind: { readonly group: string; readonly kind: string };
  /** Undefined for cluster-scoped objects. */
  readonly namespace?: string | undefined;
  readonly object: ReviewedObject | undefined;
  readonly oldObject: ReviewedObject | undefined;
  /** Name of the user who makes the request. */
  readonly user?: string | undefined;
}

export interface ReviewedObject {
  readonly metadata: {
    readonly name?: string;
    readonly generateName?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly finalizers?: readonly string[];
    readonly deletionTimestamp?: string;
    readonly ownerReferences?: readonly { readonly kind: string; readonly controller?: boolean | null | undefined }[];
    /** Unchecked. */
    readonly managedFields?: unknown;
  };
  readonly [field: string]: unknown;
}

/** A parsed review, or the uid of an unreadable one if it has one. */
export type ParsedReview =
  | { readonly ok: true; readonly request: AdmissionRequest }
  | { readonly ok: false; readonly uid: string | undefined; readonly message: string };

/** Parses an `admission.k8s.io/v1` AdmissionReview. Never throws. */
export function parseReview(body: unknown): ParsedReview {
  const parsed = admissionReview.safeParse(body);
  if (!parsed.success) {
    const uid = identified.safeParse(body).data?.request.uid;
    return { ok: false, uid, message: `not an admission review that Legation understands: ${issues(parsed.error)}` };
  }
  const { uid, operation, kind, namespace, object, oldObject, userInfo } = parsed.data.request;
  const objects = { object: withoutNulls(object), oldObject: withoutNulls(oldObject) };
  return { ok: true, request: { uid, operation, kind, namespace, ...objects, user: userInfo?.username } };
}

// Bounds the message: a hostile body can have a million problems.
const MOST_ISSUES = 10;

export function issues(error: z.ZodError): string {
  return error.issues
    .slice(0, MOST_ISSUES)
    .map(({ path, message }) => `${path.join(".")}: ${message}`)
    .join("; ");
}

function withoutNulls(object: z.output<typeof reviewed> | null | undefined): ReviewedObject | undefined {
  if (object === null || object === undefined) return undefined;
  const metadata = Object.fromEntries(Object.entries(object.metadata).filter(([, value]) => value !== null));
  return { ...object, metadata };
}
