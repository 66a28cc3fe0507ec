import { defined } from "../../api/defined.ts";
import type { AnyObject } from "../../api/delegated-type.ts";
import { CLUSTER_ANNOTATION, MEMBERS_ANNOTATION, SHARES_ANNOTATION } from "../../api/keys.ts";
import type { Job, KubeObject, Stored } from "../../api/kubernetes.ts";

type Metadata = Stored<KubeObject>["metadata"];

const ANNOTATIONS = [CLUSTER_ANNOTATION, MEMBERS_ANNOTATION, SHARES_ANNOTATION];

/** Returns what rows read of metadata. The members' record is an annotation; the rest may be secret or large. */
function metadataOfRow(metadata: Metadata): Metadata {
  const { uid, name, namespace, resourceVersion, creationTimestamp, deletionTimestamp, annotations = {} } = metadata;
  const read = ANNOTATIONS.flatMap((key) => (annotations[key] === undefined ? [] : [[key, annotations[key]]]));
  return {
    uid,
    name,
    resourceVersion,
    annotations: Object.fromEntries(read),
    ...defined({ namespace, creationTimestamp, deletionTimestamp }),
  };
}

/** Returns a whole object without what its row does not read. */
export function storedObject({ metadata }: Stored<AnyObject>): Stored<AnyObject> {
  return { metadata: metadataOfRow(metadata) };
}

/** Returns a Job without what its row does not read, such as the environment of its pods. */
export function storedJob({ metadata, spec, status }: Stored<Job>): Stored<Job> {
  const { parallelism, completions } = spec ?? {};
  const read = {
    template: {},
    ...defined({ parallelism, completions }),
  };
  return { metadata: metadataOfRow(metadata), spec: read, ...(status === undefined ? {} : { status }) };
}
