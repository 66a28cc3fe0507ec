import { z } from "zod";
import { networkOrNone } from "../../api/cluster.ts";
import { SYSTEM_NAMESPACE } from "../../api/keys.ts";
import { MOST_SHARDS } from "../../api/shards.ts";
import { counted } from "../../api/wording.ts";
import { DEFAULT_HOST_NAME, HOST_CONFIG_NAME } from "../../clusters/host-name.ts";
import { type Equip, equipped, flags } from "../shared/command.ts";
import { Discovery } from "../shared/discovery.ts";
import { flagRules, readText, shards, toggle, withGlobals } from "../shared/input.ts";
import { shippedManifests, withParts } from "../shared/manifests.ts";
import { typeList } from "../shared/named-types.ts";
import { objectText, printOutcome } from "../shared/output.ts";
import { packageVersion } from "../shared/package-root.ts";
import type { AppliedManifest } from "./apply.ts";
import { allowTypes, findAllowable, type InstallContext, install } from "./install.ts";
import { imageToKeep, refuseBesideHelm, standing } from "./installed.ts";

/** The host's name: a label value, so that users can select by it. */
export const hostName: z.ZodType<string> = z
  .string()
  .max(63, { error: "is longer than 63 characters" })
  .regex(/^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$/, {
    error: "must be letters, digits, '-', '_' or '.', with a letter or digit first and last; write e.g. berlin-1",
  });

const webhookUrl = readText((text) => {
  const url = URL.parse(text);
  const isPlain = url?.protocol === "https:" && url.pathname === "/" && url.search === "" && url.hash === "";
  return isPlain ? url.origin : undefined;
}, "is not an https address without a path; write e.g. https://127.0.0.1:8443");

// API servers accept invalid image names, which kubelets cannot pull.
const imageName = z.string().regex(/^[\w[][\w.:/@[\]-]*$/, {
  error: ({ input }) =>
    `${JSON.stringify(input)} is not the name of an image; write e.g. registry.example/legation:0.1.0`,
});

const accessAddress = z
  .string()
  .refine((text) => /^[a-zA-Z0-9.-]+:\d{1,5}$/.test(text) && URL.canParse(`https://${text}`), {
    error: ({ input }) =>
      `${JSON.stringify(input)} is not HOST:PORT with a DNS name, as a Service of type ExternalName needs; write e.g. localhost:9444`,
  });

const input = withGlobals({
  webhookUrl: webhookUrl.optional(),
  clusterName: hostName.optional(),
  network: networkOrNone.optional(),
  image: imageName.optional(),
  access: toggle,
  relay: toggle,
  mcs: z.union([z.undefined(), toggle]),
  shards: shards.optional(),
  accessAddress: accessAddress.optional(),
  types: typeList.default([]),
  definitions: toggle,
});

/** Reports whether only types are to be allowed. A part that is left out stays as it is installed. */
function allowsTypesAlone(options: z.output<typeof input>): boolean {
  const { types, definitions: _, kubeconfig: __, context: ___, output: ____, verbose: _____, mcs, ...others } = options;
  return (
    types.length > 0 &&
    mcs === undefined &&
    Object.values(others).every((value) => value === undefined || value === false)
  );
}

export const command: Equip = equipped({
  description:
    "Applies the CRDs, the namespace, service accounts and RBAC, the policies and the webhook configuration. " +
    "Run it again to upgrade, to repair or after an interruption: what is right already stays as it is, and so do " +
    "the name, the webhook's address and an image of your own when you leave these flags out.",
  flags: flags({
    "--webhook-url <url>":
      "address of a webhook that runs outside the cluster; nothing is deployed in it then (default: as installed)",
    "--cluster-name <name>": "what members call this host (default: as installed, else the kubeconfig's name)",
    "--network <name>":
      "network of the host's pods, whose addresses the members reach that joined with the same, '' for none (default: as installed)",
    "--image <image>":
      "image of the webhook and the controller in the cluster: build one, since none is published yet (default: as installed, " +
      "by the same version)",
    "--access":
      "users of the host reach the API servers of members that join with --access: serves access.legation.dev " +
      "(default: as installed)",
    "--access-address <address>":
      "HOST:PORT of a `legation access` that runs outside the cluster; none is deployed in it then (default: as installed)",
    "--relay":
      "Services with the annotation legation.dev/relay lead to pods in members whose network is not joined (default: as installed)",
    "--mcs [enabled]":
      "implements the Multi-Cluster Services API in joined networks whose clusters serve it: ServiceExports lead to ServiceImports; " +
      "--mcs=false takes them back (default: as installed)",
    "--shards <number>":
      `parts that the namespaces are divided into, which the controllers in the cluster share out; at most ${MOST_SHARDS} ` +
      "(default: as installed, else 1)",
    "--types <list>":
      "types of which members may get whole objects, e.g. certificates.cert-manager.io; those of earlier calls stay",
    "--definitions": "members without the CustomResourceDefinitions of these types get the host's, where they grant it",
  }),
  examples: {
    "install --image registry.example/legation:0.1.0": "in the cluster, from an image that you built and pushed",
    "install --webhook-url https://127.0.0.1:8443 --cluster-name host": "webhook and controller run on this machine",
    "install --access": "in the cluster, with access to members for users of the host",
    "install --types certificates.cert-manager.io": "again, so that members may get Certificates",
    install: "again: what is missing or changed is put right, and your image and address stay",
  },
  input: input.superRefine(
    flagRules({
      needs: { accessAddress: "access", definitions: "types" },
      excludes: { image: "webhookUrl" },
    }),
  ),
  working: "installing",
  run: async (options, session) => {
    const { terminal, signal } = session;
    const { client, clusterName } = await session.connect(options, "host");
    const own = await shippedManifests();
    const allowed = { ...options, knownTypes: await shippedManifests("delegated-types") };
    const before = await standing(client, own, signal);
    const objects: AppliedManifest[] = [];
    const context: InstallContext = {
      client,
      discovery: new Discovery(client, signal),
      signal,
      onApplied: (applied) => {
        objects.push(applied);
        if (applied.change === "unchanged") return;
        terminal.progress(`${objectText(applied.kind, applied)} ${applied.change}`);
      },
      onAdvice: (advice) => terminal.progress(advice),
    };
    if (before.helmRelease !== undefined && !allowsTypesAlone(options)) refuseBesideHelm(before.helmRelease);
    // The types are checked before the first write.
    const found = await findAllowable(allowed, context);
    if (before.helmRelease !== undefined) {
      await allowTypes(found, allowed, context);
      const text = `Types are allowed: ${counted(objects.length, "object")}; the rest stays as Helm installed it`;
      printOutcome(terminal, options.output, { text, document: { clusterName: before.clusterName, objects } });
      return;
    }
    const version = packageVersion();
    const name = options.clusterName ?? before.clusterName ?? hostName.safeParse(clusterName).data ?? DEFAULT_HOST_NAME;
    // With --image the webhook runs in the cluster.
    const webhookUrl = options.webhookUrl ?? (options.image === undefined ? before.webhookUrl : undefined);
    const image = options.image ?? (webhookUrl === undefined ? imageToKeep(before, version) : undefined);
    const mcs = options.mcs ?? before.mcs;
    const parts = { access: options.access || before.access !== undefined, relay: options.relay || before.relay, mcs };
    const settings = {
      webhookUrl,
      accessAddress: options.accessAddress ?? before.access?.address,
      image,
      clusterName: name,
      network: options.network ?? before.network,
      mcs,
      shards: options.shards ?? before.shards,
      version,
    };
    await install(await withParts(own, parts), settings, context);
    await allowTypes(found, allowed, context);
    if (options.network !== undefined && options.network !== (before.network ?? "")) {
      terminal.progress("controllers read the network when they start: restart them");
    }
    if (mcs !== before.mcs) {
      const then = mcs ? ", and join members again, which gives the rights" : ", which takes ServiceImports back";
      terminal.progress(`controllers read --mcs when they start: restart them${then}`);
    }
    const changed = objects.filter(({ change }) => change !== "unchanged").length;
    printOutcome(terminal, options.output, {
      text:
        `Legation is installed: ${objects.length} objects, ${changed} changed (${SYSTEM_NAMESPACE}/${HOST_CONFIG_NAME}: ` +
        `host "${name}"; webhook ${webhookUrl === undefined ? "in the cluster" : `at ${webhookUrl}`})`,
      document: { clusterName: name, objects },
    });
  },
});
