import { IS_NIGHTLY, sampleOf } from '../../support/nightly.js'
import type { Stage } from './stage.js'

/** What is attacked. `client` is `minetree/client` in a program of its own. */
export type Target = 'resolve' | 'verify' | 'mine' | 'publish' | 'crawl' | 'client'

/** What to run for an attack to happen. */
export interface Scene {
  args: string[]
  env: Record<string, string>
}

/** One server that means harm, or an honest one. */
export interface Attack {
  target: Target
  /** The server that means harm: `index`, `ARC`, and so on; `honest` where none does. */
  server: string
  /** What it does. */
  deed: string
  /** Whether it is left to the night: by day, there is one like it. */
  atNight?: boolean
  set(stage: Stage): Promise<Scene>
}

export const nameOf = ({ target, server, deed }: Attack): string => `${target}, ${server}: ${deed}`

/** The attacks that tests run. */
export function tested(attacks: Attack[]): Attack[] {
  return sampleOf(
    attacks.filter(({ atNight = false }) => IS_NIGHTLY || !atNight),
    12,
  )
}
