import { type Outpoint, PointerError, parseOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { Config } from '../server/config/config.js'
import { buildIndex } from '../server/store/facts/build-index.js'
import { checkFacts } from '../server/store/facts/check-facts.js'
import { copyLog } from '../server/store/facts/copy-log.js'
import { logPlaceIn, logPlaceOf, shownPlace } from '../server/store/facts/log-place.js'
import { assertSetting, readSettings, writeSetting } from '../server/store/facts/log-settings.js'
import { prune } from '../server/store/facts/prune.js'
import { purge } from '../server/store/facts/purge.js'
import { CommandError, usageError } from './command.js'
import { bytesText, type CommandOutput, grouped } from './output.js'

interface FactCommand {
  signal: AbortSignal
  output: CommandOutput
}

/** Copies a store and reports its size. @throws as {@link copyLog}. */
export async function runCopy({
  output,
  ...options
}: FactCommand & { from: string; to: string }): Promise<void> {
  const to = shownPlace(logPlaceOf(options.to))
  const copied = await output.showing((line) =>
    copyLog({
      ...options,
      onProgress: ({ facts, share }) => line.update(() => ({ text: `${grouped(facts)} facts`, share })),
    }),
  )
  output.result({ to, ...copied }, `copied ${grouped(copied.facts)} facts to ${to}, verified`)
}

/**
 * Verifies all facts and the index, and prints any damage.
 *
 * @throws as {@link checkFacts}; CommandError if there is damage.
 */
export async function runFactCheck({ output, ...options }: FactCommand & { config: Config }): Promise<void> {
  let damaged = 0
  let isIndexDamaged = false
  const { facts, bytes, isCompared } = await output.showing((line) =>
    checkFacts({
      ...options,
      onProgress: ({ facts, share }) => line.update(() => ({ text: `${grouped(facts)} verified`, share })),
      onDamage(damage) {
        damaged++
        line.end()
        const { problem, kind, id, rows } = damage
        isIndexDamaged ||= kind === 'index'
        output.result(
          damage,
          `${problem}: ${kind} ${id}${rows === undefined ? '' : `, ${grouped(rows)} rows`}`,
        )
      },
    }),
  )
  const verified = `${grouped(facts)} facts, ${bytesText(bytes)}${isCompared ? ', and their index' : ''}`
  if (isIndexDamaged)
    output.note('minetree build-index --again derives the index again, once the service is stopped')
  if (damaged > 0) throw new CommandError(`${grouped(damaged)} damaged of ${verified}: see docs/operating.md`)
  output.result({ facts, bytes, damaged, isCompared }, `verified ${verified}`)
  if (!isCompared) output.note('there is no index yet: the next start derives it')
}

/** Builds the index of this version. @throws as {@link buildIndex}. */
export async function runBuildIndex({
  output,
  ...options
}: FactCommand & { config: Config; again: boolean }): Promise<void> {
  const built = await output.showing((line) =>
    buildIndex({
      ...options,
      onProgress: (share) => line.update(() => ({ text: 'building', share })),
    }),
  )
  output.result(
    { built },
    built ? 'built the index' : 'the index of this version exists already: use --again to derive it again',
  )
}

/**
 * Prints the settings by which the log is derived, or replaces one. @throws as {@link writeSetting}; CommandError if it is not
 * set.
 */
export async function runSetting(
  options: Omit<FactCommand, 'signal'> & {
    config: Config
    name: string | undefined
    value: string | undefined
    restored: boolean
  },
): Promise<void> {
  const { output, config, name, value, restored } = options
  const place = logPlaceIn(config)
  if (restored && name !== undefined) throw usageError('--restored takes no setting')
  if (name !== undefined) assertSetting(name)
  if (restored) await writeSetting(place, 'restored')
  else if (name !== undefined && value !== undefined) await writeSetting(place, { name, value })
  const settings = await readSettings(place)
  if (name !== undefined && !settings.has(name))
    throw new CommandError(`${name} is not set`, { exit: 'notFound' })
  for (const [each, held] of settings)
    if (name === undefined || name === each) output.result({ name: each, value: held }, `${each}=${held}`)
}

/** Removes bodies from the log, and says where copies may be. @throws as {@link purge}; CommandError if bytes are left. */
export async function runPurge(
  options: Omit<FactCommand, 'signal'> & { config: Config; outpoints: string[]; reason: string },
): Promise<void> {
  const { output, config, outpoints, reason } = options
  const wanted = outpoints.map(outpointOf)
  const { unread, ...purged } = await purge(logPlaceIn(config), wanted, reason)
  output.result(
    { ...purged, unread },
    `overwrote and blocked ${purged.sha256.join(', ')} in:`,
    ...purged.outpoints.map((each) => `  ${each}`),
    ...purged.forgotten.map((each) => `  ${each}, which was pending: it is forgotten`),
    'copies may be left in backups and copies of this store, at peers that had it from here, and in caches in front of this host',
  )
  if (unread.length > 0)
    throw new CommandError(
      `${grouped(unread.length)} transactions are damaged and may have a copy: ${unread.join(', ')}`,
    )
}

/** @throws CommandError (`usage`) */
function outpointOf(text: string): Outpoint {
  try {
    return parseOutpoint(text)
  } catch (error) {
    if (!(error instanceof PointerError)) throw error
    throw usageError(`${JSON.stringify(text)} is not an outpoint, <txid>_<vout>`)
  }
}

/** Drops transactions that nobody has seen. @throws as {@link prune}. */
export async function runPrune({
  output,
  force,
  ...options
}: FactCommand & { config: Config; force: boolean }): Promise<void> {
  const keepsNames = options.config.chainSources.length === 0 && !force
  const { transactions, bytes } = await output.showing((line) =>
    prune({
      ...options,
      keepsNames,
      onProgress: (share) => line.update(() => ({ text: 'building the index', share })),
    }),
  )
  output.result(
    { transactions, bytes },
    `dropped ${grouped(transactions)} unproven transactions, ${bytesText(bytes)}, not seen for 14 days`,
  )
}
