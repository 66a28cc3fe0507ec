import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import type { OpenPage } from "../../test/support/ui/browser.ts";
import { MANIFESTS } from "./scene.ts";

// Tables of many columns need more room.
const WIDTH = 1200;
const WIDE = 1700;
const LEAST_HEIGHT = 480;
const MARGIN = 20;

/** A picture of a view of the page. */
interface View {
  /** Name of the files, without the theme. */
  readonly name: string;
  /** Address within the page, such as `#/pods`. */
  readonly address: string;
  /** Waits until everything that the picture is of is there. */
  readonly ready: (page: Page) => Promise<void>;
  /** Size of the window in CSS pixels. Absent: as high as the view. */
  readonly width?: number;
  readonly height?: number;
}

/** Takes the pictures of the scene before the member is lost. `pod`: one of web. */
export async function takeQuietPictures(ui: OpenPage, folder: string, pod: string): Promise<void> {
  const views: View[] = [
    { name: "plan", address: "#/plan", ready: plan },
    { name: "way", address: `#/pods/shop/${pod}`, ready: (page) => seen(page, /^scheduled in/), height: 620 },
    { name: "yaml", address: `#/pods/shop/${pod}?tab=yaml`, ready: (page) => seen(page, /^delegate in/), height: 804 },
  ];
  for (const view of views) await takePicture(ui, folder, view);
}

/** Takes the pictures of the scene once a member is lost. */
export async function takePictures(ui: OpenPage, folder: string): Promise<void> {
  const lost = (page: Page): Promise<void> => seen(page, /^(Not ready|Unknown)$/);
  const views: View[] = [
    { name: "overview", address: "#/", ready: (page) => seen(page, "NotPlaced") },
    { name: "members", address: "#/members", ready: lost },
    { name: "member", address: "#/members/north", ready: (page) => seen(page, /cpu: .* free of/), height: 785 },
    { name: "workloads", address: "#/workloads", ready: (page) => seen(page, "Job/report"), width: WIDE, height: 480 },
    { name: "pods", address: "#/pods?sort=-Name", ready: (page) => seen(page, "fine-tune"), width: WIDE, height: 800 },
    { name: "narrow", address: "#/members", ready: lost, width: 400, height: 800 },
  ];
  for (const view of views) await takePicture(ui, folder, view);
}

/** Takes the picture of a view in both themes. */
async function takePicture({ page, show }: OpenPage, folder: string, view: View): Promise<void> {
  const { name, address, ready, width = WIDTH, height } = view;
  await page.setViewportSize({ width, height: height ?? LEAST_HEIGHT });
  await show(address);
  await ready(page);
  if (height === undefined) await page.setViewportSize({ width, height: await contentHeight(page) });
  // Nothing is under the mouse.
  await page.mouse.move(0, 0);
  for (const colorScheme of ["dark", "light"] as const) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: join(folder, `${name}-${colorScheme}.png`) });
  }
}

/** Returns the height that a view takes, which scrolls by itself. */
async function contentHeight(page: Page): Promise<number> {
  const height: unknown = await page.evaluate("document.querySelector('main').scrollHeight");
  if (typeof height !== "number") throw new Error("the page has no main part");
  return Math.max(LEAST_HEIGHT, height + MARGIN);
}

async function seen(page: Page, text: string | RegExp): Promise<void> {
  await page.getByText(text).first().waitFor();
}

async function plan(page: Page): Promise<void> {
  const files = ["train-model.yaml", "fine-tune.yaml"].map((name) => readFileSync(join(MANIFESTS, name), "utf8"));
  await page.getByRole("textbox", { name: "Manifest" }).fill(files.join("---\n"));
  await page.getByRole("button", { name: "Plan" }).click();
  await seen(page, "Would wait");
  await page.evaluate("document.querySelector('textarea').scrollTop = 0");
}
