import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { readTrialArguments } from '../arguments.js'
import { soak } from './soak.js'

/**
 * The soak: `npm run soak -- --minutes 30 --seed n`. Writes and reads at the rate that the machine holds, kills the
 * server in between, and ends with 1 where an answer was wrong or none, or memory or handles kept growing.
 */
const MAIN = join(resolve(import.meta.dirname, '../../../..'), 'dist/cli/main.js')
/** A minute and a half between two kills, but a few in a short run as well. */
const KILLS_A_MINUTE = 2 / 3
const MIN_KILLS = 4

const { minutes, seed } = readTrialArguments({ minutes: 30 })
const say = (line: string): void => {
  process.stdout.write(`${line}\n`)
}
say(`seed ${seed}, ${minutes} minutes`)
const dataDir = await mkdtemp(join(tmpdir(), 'minetree-soak-'))
const kills = Math.max(MIN_KILLS, Math.round(minutes * KILLS_A_MINUTE))
const milliseconds = minutes * 60_000
const figures = await soak({ main: MAIN, dataDir, seed, milliseconds, kills, report: say })
await rm(dataDir, { recursive: true, force: true })

const { writes, reads, wrongAnswers, memory, handles } = figures
const mebibytes = memory.medians.map((bytes) => (bytes / 2 ** 20).toFixed(0))
const grow = (hasGrown: boolean): string => (hasGrown ? ' (they grow)' : '')
say(
  `${writes + reads} requests, ${writes} writes, ${figures.kills} kills, ${wrongAnswers} wrong answers, ` +
    `memory ${mebibytes.join(', ')} MiB${grow(memory.hasGrown)}, handles ${handles.medians.join(', ')}${grow(handles.hasGrown)}`,
)
if (wrongAnswers > 0 || memory.hasGrown || handles.hasGrown) process.exitCode = 1
