import { setTimeout as sleep } from 'node:timers/promises'
import { beefOf, FakeChain } from '../../test/support/protocol/fake-chain.js'
import { Random } from '../../test/support/random.js'
import { submission, treeOf } from '../../test/support/server/test-server.js'
import { type Growth, growthOf, medianOf } from '../growth.js'
import { type Life, Lives } from './lives.js'
import { NameWriter } from './name-writer.js'
import { OrdinalWriter } from './ordinal-writer.js'
import { type Ask, readName, readOne, readOrdinal, Written } from './reader.js'
import { bringProofTo, submitTo } from './submit.js'

export interface SoakOptions {
  /** The built command line, `dist/cli/main.js`. */
  main: string
  dataDir: string
  seed: number
  /** How long it lasts, beside the time that the server takes to start again. */
  milliseconds: number
  kills: number
  /** Called with a line of progress after every restart, and with wrong answers as they come. */
  report?: (line: string) => void
}

export interface SoakFigures {
  writes: number
  reads: number
  kills: number
  /** How often an answer was not right, or did not come. */
  wrongAnswers: number
  /** Medians of the lives of the server, by thirds of them, in bytes; undefined where there were too few to compare. */
  memory: Growth
  handles: Growth
}

const ORDINAL_WRITERS = 4
const READERS = 4
const PATIENCE = 60_000
/** How much of what is old is looked at after each restart, beside all that was written since the one before. */
const LOOKED_AT_AGAIN = 100
const MAX_REPORTED = 20
/** How long a reader waits where nothing is written, in milliseconds. */
const NOTHING_YET = 10
/** Of the samples of a life, those that are left out: code is compiled, and caches fill. */
const WARM_UP = 0.3
const MEMORY_SLACK = 96 * 1024 * 1024
const HANDLE_SLACK = 16

/** Writes and reads at once, kills the server meanwhile, and holds every answer against what it must be. */
export async function soak(options: SoakOptions): Promise<SoakFigures> {
  const { main, dataDir, seed, milliseconds } = options
  const chain = new FakeChain()
  const env = { ...SETTINGS, DATA_DIR: dataDir, ...treeOf(chain.deployment) }
  const lives = new Lives({ main, env, patience: PATIENCE })
  const figures = { writes: 0, reads: 0, kills: 0, wrongAnswers: 0 }
  const complain = (what: string): void => {
    figures.wrongAnswers++
    if (figures.wrongAnswers <= MAX_REPORTED) options.report?.(`wrong: ${what.slice(0, 500)}`)
  }
  const read = async (reading: ReturnType<typeof readOne>): Promise<void> => {
    // There is nothing to read yet.
    if (reading === undefined) return await sleep(NOTHING_YET)
    figures.reads++
    const wrong = await reading
    if (wrong !== undefined) complain(wrong)
  }
  const written = new Written()
  const reporting = { complain, count: () => figures.writes++ }
  const submit = submitTo(lives, reporting)
  const bringProof = bringProofTo(lives, reporting)
  const ask: Ask = async (path, question) => (await lives.ask(path, question)).answer
  await ask('/submit', submission(beefOf(chain.genesis), ['tm_names']))

  let chosen = 0
  const random = (): Random => new Random(Math.imul(seed, 0x9e3779b1) + chosen++)
  const writers = [
    new NameWriter({ letter: 's', chain, random: random(), submit, written }),
    ...Array.from({ length: ORDINAL_WRITERS }, (_, at) => {
      return new OrdinalWriter({ name: `writer ${at}`, chain, random: random(), submit, bringProof, written })
    }),
  ]
  let begun = performance.now()
  const clients = [
    ...writers.map((writer) => () => writer.write()),
    ...Array.from({ length: READERS }, random).map((each) => () => read(readOne(ask, written, each))),
  ].map(async (work) => {
    while (performance.now() < begun + milliseconds) {
      // An answer that does not come is a wrong one.
      await work().catch(async (error: unknown) => {
        complain(String(error))
        await sleep(100)
      })
    }
  })
  const killer = random()
  const lookAgain = async (askNew: Ask): Promise<void> => {
    const { ordinals, names } = written.sinceLast(LOOKED_AT_AGAIN, killer)
    for (const ordinal of ordinals) await read(readOrdinal(askNew, ordinal, killer))
    for (const name of names) await read(readName(askNew, name, killer))
  }
  for (const at of momentsOf(killer, options)) {
    await sleep(begun + at - performance.now())
    const killed = performance.now()
    await lives.kill(lookAgain)
    begun += performance.now() - killed
    figures.kills++
    options.report?.(
      `${figures.kills} kills, ${figures.writes} writes, ${figures.reads} reads, ${figures.wrongAnswers} wrong`,
    )
  }
  await Promise.all(clients)
  for (const ordinal of written.ordinals) await read(readOrdinal(ask, ordinal, killer))
  for (const name of written.names) await read(readName(ask, name, killer))
  await lives.end()
  return { ...figures, ...grown(lives.past) }
}

/** Limits are for others: this is one client who asks as fast as it can. */
const SETTINGS = {
  PORT: '0',
  SEED: 'none',
  LOG_LEVEL: 'info',
  READS_PER_MINUTE: '0',
  SUBMISSIONS_PER_MINUTE: '0',
}

/** When to kill, in milliseconds from the start: once in each of as many equal parts of the time. */
function momentsOf(random: Random, { milliseconds, kills }: SoakOptions): number[] {
  const part = milliseconds / (kills + 1)
  return Array.from({ length: kills }, (_, at) => part * (at + random.between(0.5, 1.2)))
}

function grown(lives: readonly Life[]): Pick<SoakFigures, 'memory' | 'handles'> {
  const medians = (measure: 'rss' | 'handles'): number[] =>
    lives.map(({ samples }) =>
      medianOf(samples.slice(Math.floor(samples.length * WARM_UP)).map((each) => each[measure])),
    )
  return {
    memory: growthOf(medians('rss'), { slack: MEMORY_SLACK }),
    handles: growthOf(medians('handles'), { slack: HANDLE_SLACK }),
  }
}
