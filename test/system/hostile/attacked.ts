import { join } from 'node:path'
import pLimit from 'p-limit'
import { builtPackage } from '../../support/cli/built-package.js'
import { type Attack, nameOf } from './attack.js'
import { CLIENT_PROGRAM } from './attacks/client.js'
import { BODY_DEEDS, FRAMING_DEEDS, WAITING_DEEDS } from './body-deeds.js'
import type { SignedMint } from './ledger.js'
import { type ClientEnd, runClient } from './run-client.js'
import { Stage } from './stage.js'

const MiB = 1024 * 1024

/** When a command is killed: no rule is about this time, but that it ends by itself. */
const MOST = { time: 120_000, memory: 1024 * MiB }
/** How many commands run at once: those that work, and beside them those that wait for a server. */
const AT_ONCE = { working: 1, waiting: 6 }

/** What an attack came to. */
export interface Result {
  end: ClientEnd
  signed: SignedMint[]
  doubleSpends: string[]
  /** What a host saw that the client should not have gone to. */
  visits: string[]
  /** What the hostile servers saw. */
  requests: string[]
  /** What they were allowed to send, in bytes, where the client can count them. */
  sent: number
}

/** Runs attacks on the command as it is installed, before the tests of a file; gives what each of them came to. */
export function useAttacks(attacks: readonly Attack[]): (attack: Attack) => Result {
  const results = new Map<string, Result>()
  beforeAll(async () => {
    const main = join(await builtPackage(), 'dist/cli/main.js')
    const perform = async (attack: Attack): Promise<void> => {
      results.set(nameOf(attack), await attacked(attack, main))
    }
    const [working, waiting] = [pLimit(AT_ONCE.working), pLimit(AT_ONCE.waiting)]
    // A crawl asks again after pauses, whatever is wrong with an answer.
    const isWaiting = ({ target, deed }: Attack): boolean =>
      WAITING_DEEDS.some((each) => deed.startsWith(each)) || (target === 'crawl' && deed in BODY_DEEDS)
    const turnOf = (attack: Attack) => (isWaiting(attack) ? waiting : working)
    await Promise.all(attacks.map((attack) => turnOf(attack)(() => perform(attack))))
  }, 1_800_000)
  return (attack) => {
    const result = results.get(nameOf(attack))
    if (result === undefined) throw new Error(`${nameOf(attack)} was not performed`)
    return result
  }
}

/** Performs one attack. */
async function attacked({ target, deed, set }: Attack, main: string): Promise<Result> {
  const stage = await Stage.open()
  try {
    const { args, env } = await set(stage)
    const program =
      target === 'client' ? ['--input-type=module', '-e', CLIENT_PROGRAM, '--', `file://${main}`] : [main]
    const end = await runClient({ program, args, env, folder: await stage.folder(), most: MOST })
    return {
      end,
      signed: stage.ledger.signed,
      doubleSpends: stage.ledger.doubleSpends,
      visits: stage.internal.requests,
      requests: stage.servers.flatMap(({ requests }) => requests),
      sent: FRAMING_DEEDS.some((each) => deed.startsWith(each))
        ? 0
        : stage.servers.reduce((sum, { sentBytes }) => sum + sentBytes, 0),
    }
  } finally {
    await stage.close()
  }
}

/** How much a command may print, in bytes, whatever a server sends. */
const MOST_PRINTED = 10_000
/** What a command needs for itself, for one answer of the greatest length, and for what is not collected yet. */
const MOST_MEMORY = 768 * MiB
/** What may lie in buffers of the machine, of what nobody read: some MiB for each connection. */
const IN_BUFFERS = 16 * MiB

/** Holds what came of an attack to the rules that hold for all of them. */
export function expectBounded(
  { end, visits, sent }: Result,
  { maxSent, failure = 'minetree: ' }: { maxSent: number; failure?: string },
): void {
  const { code, killed, stdout, stderr, peak } = end
  expect({ killed, visits, isCode: typeof code === 'number' }).toEqual({
    killed: undefined,
    visits: [],
    isCode: true,
  })
  expect(sent).toBeLessThanOrEqual(maxSent + IN_BUFFERS)
  expect(stdout.length + stderr.length).toBeLessThanOrEqual(MOST_PRINTED)
  expect(stderr).not.toContain('(unexpected')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what must not be there
  expect(stdout + stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f]/)
  if (code !== 0) expect(stderr.trimEnd().split('\n').at(-1)).toMatch(new RegExp(`^${failure}.{1,2000}$`))
  expect(peak).toBeLessThanOrEqual(MOST_MEMORY)
}
