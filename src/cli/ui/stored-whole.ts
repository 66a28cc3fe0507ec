import { defined } from "../../api/defined.ts";
import type { AnyObject } from "../../api/delegated-type.ts";
import { CLUSTER_ANNOTATION, MEMBERS_ANNOTATION } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { WholeType } from "../../whole/type.ts";
import { WHOLE_TYPES } from "../../whole/types.ts";

type Metadata = Stored<KubeObject>["metadata"];

const ANNOTATIONS = [CLUSTER_ANNOTATION, MEMBERS_ANNOTATION, ...WHOLE_TYPES.flatMap(({ recordKeys }) => recordKeys)];

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

/** Returns an object of a built-in type without what its row does not read, such as the environment of a Job's pods. */
export function storedBuiltIn(type: WholeType, object: Stored<KubeObject>): Stored<KubeObject> {
  return { ...type.fieldsOfParts(object), metadata: metadataOfRow(object.metadata) };
}
