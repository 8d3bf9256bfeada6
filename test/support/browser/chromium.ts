import { existsSync } from 'node:fs'

/** Chromium without windows costs a fifth of the processor time of the whole: a profile and a page there take a second. */
export const CHROMIUM = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome']
  .map((program) => `/usr/bin/${program}`)
  .find((path) => existsSync(path))

/** Whether there is a browser to test in. */
export const hasChromium = CHROMIUM !== undefined

const given = (globalThis as unknown as { test: typeof test }).test

/** A test in a browser; a machine without one skips it. Undefined in a bench, which runs without Vitest. */
export const inBrowser = hasChromium ? given : given?.skip

/** Flags that keep it to the page: no window, no services of its own, no calls home. */
export const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // A page may open another without a click: what it may do to it then is what is tested.
  '--disable-popup-blocking',
]
