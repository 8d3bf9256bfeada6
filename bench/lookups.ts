import { fork } from 'node:child_process'
import { once } from 'node:events'
import autocannon from 'autocannon'
import { median } from './support.js'

const ROUNDS = 5
const SECONDS = 2
const CONNECTIONS = 16

/**
 * Requests a second that `origin` and `mine` answer, against a bare Express route that answers JSON of the same shape;
 * by turns, from one server process, over a tree of 500 names.
 */
export async function* lookups(): AsyncGenerator<string> {
  const server = fork(new URL('./lookups-server.js', import.meta.url), {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  try {
    const [{ url, bare, names }] = (await once(server, 'message')) as [
      { url: string; bare: string; names: string[] },
    ]
    const targets = {
      bare: names.map((name) => `${bare}/svc/names/origin/${name}`),
      origin: names.map((name) => `${url}/svc/names/origin/${name}`),
      mine: names.map((name) => `${url}/svc/names/mine/${name}zz`),
    }
    const rates: Record<string, number[]> = { bare: [], origin: [], mine: [] }
    for (let round = 0; round < ROUNDS; round++) {
      for (const [target, urls] of Object.entries(targets)) rates[target]?.push(await load(urls))
    }
    const rate = (target: string): number => median(rates[target] ?? [])
    yield `requests a second (medians of ${ROUNDS}): bare ${rate('bare').toFixed(0)}, origin ${rate('origin').toFixed(0)}, mine ${rate('mine').toFixed(0)}`
    yield `origin ratio ${(rate('origin') / rate('bare')).toFixed(2)}, mine ratio ${(rate('mine') / rate('bare')).toFixed(2)} (wanted: at least 0.6)`
  } finally {
    server.kill()
  }
}

async function load(urls: string[]): Promise<number> {
  const [first = ''] = urls
  const { origin } = new URL(first)
  const requests = urls.map((url) => ({ path: new URL(url).pathname }))
  const result = await autocannon({ url: origin, requests, connections: CONNECTIONS, duration: SECONDS })
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${origin}: ${result.non2xx} wrong answers, ${result.errors} errors`)
  return result.requests.average
}
