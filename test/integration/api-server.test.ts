import { customResourceDefinitions } from "../../src/kube/resources.ts";
import { notes } from "../support/api-server/conformance/suite.ts";
import { apiServerConformance } from "../support/api-server/conformance.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { clientOf } from "../support/harness/clients.ts";
import { memberCluster } from "../support/harness/clusters.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventually } from "../support/harness/wait.ts";

apiServerConformance(async () => {
  const cluster = memberCluster("west");
  const client = clientOf(cluster);
  const name = `${notes.plural}.${notes.group}`;
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  const versions = [{ name: notes.version, served: true, storage: true, schema, subresources: { status: {} } }];
  const spec = { group: notes.group, names: { kind: notes.kind, plural: notes.plural }, scope: "Namespaced", versions };
  await client.create(customResourceDefinitions, { metadata: { name }, ...{ spec } });
  const namespace = await freshNamespace(cluster, { prefix: "conformance", deleted: true, onFinished: afterFile });
  await eventually(() => client.list(notes, { namespace }), { what: "the notes API" });
  const close = async (): Promise<void> => {
    await client.delete(customResourceDefinitions, { name });
    await client.close();
  };
  return { client, namespace, close };
});
