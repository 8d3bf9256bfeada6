import type { GatewayReady } from './gateway-server.js'
import { ratesByTurns, shown, withProcess } from './load.js'

/**
 * What reads of the gateway cost: 4 KiB of content by outpoint and at the tip against a bare Express handler that ends
 * with the same bytes and headers; the tip of an ordinal at step 10,000 against one at step 10, both
 * read from the store every time; a file eight directories
 * down against one in a flat directory; 100 records at once against 100 one by one. By turns, from one server process.
 */
export async function* gateway(): AsyncGenerator<string> {
  yield* withProcess('./gateway-server.js', [], async function* (ready: GatewayReady) {
    const { url, bare, bareTip, forgetful, files, young, old, flat, deep } = ready
    const at = (...paths: string[]) => ({ origin: url, paths })
    const unkept = (...paths: string[]) => ({ origin: forgetful, paths })
    const content = await ratesByTurns({
      bare: { origin: bare, paths: files.map((file) => `/content/${file}`) },
      'bare tip': { origin: bareTip, paths: files.map((file) => `/content/${file}:-1`) },
      outpoint: at(...files.map((file) => `/content/${file}`)),
      tip: at(...files.map((file) => `/content/${file}:-1`)),
    })
    yield shown(content)
    const byOutpoint = (content.outpoint / content.bare).toFixed(2)
    const atTip = (content.tip / content['bare tip']).toFixed(2)
    yield `4 KiB by outpoint ratio ${byOutpoint}, at the tip ratio ${atTip} (wanted: at least 0.8)`

    const tips = await ratesByTurns({
      'content at 10': unkept(`/content/${young}:-1`),
      'content at 10,000': unkept(`/content/${old}:-1`),
      'metadata at 10': unkept(`/svc/gateway/metadata/${young}:-1`),
      'metadata at 10,000': unkept(`/svc/gateway/metadata/${old}:-1`),
    })
    yield shown(tips)
    const aged = (what: 'content' | 'metadata'): string =>
      (tips[`${what} at 10`] / tips[`${what} at 10,000`]).toFixed(2)
    yield `step 10,000 takes ${aged('content')} times step 10 for content, ${aged('metadata')} times for metadata (wanted: at most 1.3)`

    const paths = await ratesByTurns({ flat: at(`/content/${flat}`), deep: at(`/content/${deep}`) })
    yield shown(paths)
    yield `eight directories down takes ${(paths.flat / paths.deep).toFixed(2)} times one (wanted: at most 2.5)`

    const records = await ratesByTurns({
      single: at(...files.map((file) => `/svc/gateway/metadata/${file}:-1`)),
      bulk: {
        origin: url,
        paths: ['/svc/gateway/metadata'],
        method: 'POST',
        body: JSON.stringify(files.map((file) => `${file}:-1`)),
      },
    })
    yield shown(records)
    yield `100 records at once are ${((records.bulk * 100) / records.single).toFixed(1)} times as fast as one by one (wanted: at least 8)`
  })
}
