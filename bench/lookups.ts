import { roundsByTurns, shown, speedRatio, withProcess } from './load.js'

/**
 * Requests a second that `origin` and `mine` answer, against a bare Express route that answers JSON of the same shape;
 * by turns, from one server process, over a tree of 500 names.
 */
export async function* lookups(): AsyncGenerator<string> {
  yield* withProcess(
    './lookups-server.js',
    [],
    async function* (ready: { url: string; bare: string; names: string[] }) {
      const { url, bare, names } = ready
      const rounds = await roundsByTurns({
        bare: { origin: bare, paths: names.map((name) => `/svc/names/origin/${name}`) },
        origin: { origin: url, paths: names.map((name) => `/svc/names/origin/${name}`) },
        mine: { origin: url, paths: names.map((name) => `/svc/names/mine/${name}zz`) },
      })
      yield shown(rounds)
      const ratio = (name: 'origin' | 'mine'): string => speedRatio(rounds[name], rounds.bare).toFixed(2)
      yield `origin ratio ${ratio('origin')}, mine ratio ${ratio('mine')} (wanted: at least 0.6)`
    },
  )
}
