import { describe, expect, test } from "vitest";
import { isToolsAnnotation, isToolsLabel } from "../../../src/api/delivery-tools.ts";

const TOOLS: readonly [string, string, string][] = [
  ["Argo CD's tracking annotation", "argocd.argoproj.io/tracking-id", "shop:/ConfigMap:shop/cfg"],
  ["Argo CD's own instance label", "argocd.argoproj.io/instance", "shop"],
  ["Flux's kustomize-controller", "kustomize.toolkit.fluxcd.io/name", "shop"],
  ["Flux's helm-controller", "helm.toolkit.fluxcd.io/namespace", "flux-system"],
  ["Flux 1", "fluxcd.io/sync-gc-mark", "sha256.x"],
  ["Flux's operator", "resourceset.fluxcd.controlplane.io/name", "shop"],
  ["Helm", "meta.helm.sh/release-name", "shop"],
  ["kubectl's applysets", "applyset.kubernetes.io/part-of", "applyset-x-v1"],
  ["the parent of an applyset", "applyset.kubernetes.io/id", "applyset-x-v1"],
  ["kpt and cli-utils", "config.k8s.io/owning-inventory", "x"],
  ["earlier versions of cli-utils", "config.kubernetes.io/owning-inventory", "x"],
  ["the lifecycle of cli-utils", "client.lifecycle.config.k8s.io/deletion", "detach"],
  ["an inventory of cli-utils", "cli-utils.sigs.k8s.io/inventory-id", "x"],
  ["Config Sync", "configsync.gke.io/resource-id", "_configmap_shop_cfg"],
  ["Config Sync's management", "configmanagement.gke.io/managed", "enabled"],
  ["Rancher's Fleet", "fleet.cattle.io/bundle-id", "shop"],
  ["Rancher's object sets", "objectset.rio.cattle.io/hash", "x"],
  ["kapp-controller", "packaging.carvel.dev/package", "shop"],
  ["the add-on manager", "addonmanager.kubernetes.io/mode", "Reconcile"],
  ["kluctl", "kluctl.io/discriminator", "shop"],
  ["Pulumi", "pulumi.com/autonamed", "true"],
  ["Karmada", "work.karmada.io/permanent-id", "x"],
];

describe.each(TOOLS)("a key of %s, %s,", (_, key, value) => {
  test("marks copies and pods", () => {
    for (const bearer of ["copy", "pod"] as const) {
      expect(isToolsLabel(key, value, bearer)).toBe(true);
      expect(isToolsAnnotation(key, bearer)).toBe(true);
    }
  });
});

test.each([
  ["app.kubernetes.io/instance", "shop"],
  ["app.kubernetes.io/managed-by", "Helm"],
  ["app.kubernetes.io/managed-by", "configmanagement.gke.io"],
  ["applications.argoproj.io/app-name", "shop"],
  ["kubernetes.io/cluster-service", "true"],
  ["kapp.k14s.io/app", "1536"],
  ["olm.catalogSource", "operators"],
  ["operators.coreos.com/etcd.shop", ""],
])("the label %s: %s, by which pods may be selected, marks copies alone", (key, value) => {
  expect(isToolsLabel(key, value, "copy")).toBe(true);
  expect(isToolsLabel(key, value, "pod")).toBe(false);
});

test("an annotation that an operator reads of its pod marks copies alone", () => {
  expect(isToolsAnnotation("olm.targetNamespaces", "copy")).toBe(true);
  expect(isToolsAnnotation("olm.targetNamespaces", "pod")).toBe(false);
});

test("what kubectl applied last marks copies alone", () => {
  const key = "kubectl.kubernetes.io/last-applied-configuration";
  expect(isToolsAnnotation(key, "copy")).toBe(true);
  expect(isToolsAnnotation(key, "pod")).toBe(false);
});

test.each(["helm.sh/hook", "kapp.k14s.io/original"])("the annotation %s marks copies and pods", (key) => {
  expect(isToolsAnnotation(key, "copy")).toBe(true);
  expect(isToolsAnnotation(key, "pod")).toBe(true);
});

test.each([
  ["app", "web"],
  ["app.kubernetes.io/name", "web"],
  ["app.kubernetes.io/part-of", "shop"],
  ["app.kubernetes.io/managed-by", "tekton-pipelines"],
  ["helm.sh/chart", "shop-1.0"],
  ["workflows.argoproj.io/workflow", "train"],
  ["kubernetes.io/metadata.name", "shop"],
  ["spark-role", "driver"],
  ["notfluxcd.io/name", "x"],
  ["example.com/fluxcd.io", "x"],
])("the label %s: %s marks nothing", (key, value) => {
  expect(isToolsLabel(key, value, "copy")).toBe(false);
  expect(isToolsLabel(key, value, "pod")).toBe(false);
});
