import type { BareReady } from './bare-server.js'
import type { GatewayReady } from './gateway-server.js'
import { cpuRatio, type Round, roundsByTurns, shown, speedRatio, type Target, withProcess } from './load.js'

/**
 * What reads of the gateway cost: 4 KiB of content by outpoint and at the tip against a bare Express handler, in a process
 * of its own, that sends the same bytes and headers; the tip of an ordinal at step 10,000 against one at step 10, both
 * read from the store every time; a file eight directories down against one in a flat directory; 100 records at once
 * against 100 one by one. By turns.
 */
export async function* gateway(): AsyncGenerator<string> {
  yield* withProcess('./gateway-server.js', [], async function* (ready: GatewayReady, server) {
    const { url, forgetful, files, young, old, flat, deep } = ready
    const at = (...paths: string[]): Target => ({ origin: url, server, paths })
    const unkept = (...paths: string[]): Target => ({ origin: forgetful, server, paths })
    yield* compareWithBare({
      outpoint: at(...files.map((file) => `/content/${file}`)),
      tip: at(...files.map((file) => `/content/${file}:-1`)),
    })

    const tips = await roundsByTurns({
      'content at 10': unkept(`/content/${young}:-1`),
      'content at 10,000': unkept(`/content/${old}:-1`),
      'metadata at 10': unkept(`/svc/gateway/metadata/${young}:-1`),
      'metadata at 10,000': unkept(`/svc/gateway/metadata/${old}:-1`),
    })
    yield shown(tips)
    const aged = (what: 'content' | 'metadata'): string =>
      speedRatio(tips[`${what} at 10`], tips[`${what} at 10,000`]).toFixed(2)
    yield `step 10,000 takes ${aged('content')} times step 10 for content, ${aged('metadata')} times for metadata (wanted: at most 1.3)`

    const paths = await roundsByTurns({ flat: at(`/content/${flat}`), deep: at(`/content/${deep}`) })
    yield shown(paths)
    yield `eight directories down takes ${speedRatio(paths.flat, paths.deep).toFixed(2)} times one (wanted: at most 2.5)`

    const records = await roundsByTurns({
      single: at(...files.map((file) => `/svc/gateway/metadata/${file}:-1`)),
      bulk: {
        ...at('/svc/gateway/metadata'),
        method: 'POST',
        body: JSON.stringify(files.map((file) => `${file}:-1`)),
      },
    })
    yield shown(records)
    yield `100 records at once are ${(speedRatio(records.bulk, records.single) * 100).toFixed(1)} times as fast as one by one (wanted: at least 8)`
  })
}

/** Loads each of our targets by turns with a bare Express app that answers like its first path. */
async function* compareWithBare(ours: { outpoint: Target; tip: Target }): AsyncGenerator<string> {
  const likenesses = Object.values(ours).map(({ origin, paths: [first] }) => `${origin}${first}`)
  yield* withProcess('./bare-server.js', likenesses, async function* (urls: BareReady, server) {
    const [outpoint = '', tip = ''] = urls
    const rounds = await roundsByTurns({
      'bare by outpoint': { ...ours.outpoint, origin: outpoint, server },
      'by outpoint': ours.outpoint,
      'bare at the tip': { ...ours.tip, origin: tip, server },
      'at the tip': ours.tip,
    })
    yield shown(rounds)
    const ratios = (ratio: (own: Round[], base: Round[]) => number): string => {
      const byOutpoint = ratio(rounds['by outpoint'], rounds['bare by outpoint'])
      const atTip = ratio(rounds['at the tip'], rounds['bare at the tip'])
      return `${byOutpoint.toFixed(2)} by outpoint, ${atTip.toFixed(2)} at the tip`
    }
    yield `4 KiB, speed as a multiple of bare Express: ${ratios(speedRatio)} (wanted: at least 0.85)`
    yield `requests for the CPU time of one of bare Express: ${ratios(cpuRatio)} (wanted: at least 0.85)`
  })
}
