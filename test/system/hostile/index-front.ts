import { ask } from '../../support/server/test-server.js'
import type { BodyDeed } from './body-deeds.js'
import { answer, type Handler, type HostileRequest, type HostileServer } from './hostile-server.js'
import type { Stage } from './stage.js'

/** What is done with a path, and with all below it, in place of the true answer. */
export type IndexAnswers = Record<string, Handler>

/**
 * An index that answers some paths itself and leaves the others to a real server, or to nobody. Mints that are submitted to it
 * are noted.
 */
export async function indexFront(
  stage: Stage,
  { behind, answers }: { behind?: string; answers: IndexAnswers },
): Promise<HostileServer> {
  return await stage.serve(async (request, response) => {
    if (request.path === '/submit') stage.ledger.noteBeef(request.body, 'index')
    const [own] = Object.entries(answers)
      .filter(([path]) => request.path === path || request.path.startsWith(`${path}/`))
      .sort(([one], [other]) => other.length - one.length)
    if (own !== undefined) return await own[1](request, response)
    if (behind === undefined)
      return answer(response, { error: 'nothing here', code: 'NOT_FOUND' }, { status: 404 })
    const { status, headers, body } = await forward(behind, request)
    response.writeHead(status, { 'Content-Type': headers['content-type'] ?? '' }).end(body)
  })
}

/** Asks the real server the same. */
export async function forward(behind: string, { method, path, headers, body }: HostileRequest) {
  const passed = ['content-type', 'x-topics', 'x-aggregation', 'accept'].flatMap((name) => {
    const value = headers[name]
    return typeof value === 'string' ? [[name, value]] : []
  })
  return await ask(behind, path, { method, headers: Object.fromEntries(passed), body })
}

/** A handler that does this to every request. */
export function doing(deed: BodyDeed, stage: Stage): Handler {
  return (_, response) => deed(response, { internal: stage.internal.url })
}
