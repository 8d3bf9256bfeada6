import { SITE_SCRIPTS, type SiteQuestion, type SiteVerdict } from '../../client/site-page.js'

// Starts the worker, has it verify the content of this address, and loads the content only then.

function say(text: string): void {
  const place = document.getElementById('status')
  if (place !== null) place.textContent = text
}

/** The worker, once it answers requests of newly loaded pages. */
async function startedWorker(): Promise<ServiceWorker> {
  const { installing, waiting, active } = await navigator.serviceWorker.register(SITE_SCRIPTS.worker, {
    ...{ scope: '/', type: 'module', updateViaCache: 'none' },
  })
  const worker = installing ?? waiting ?? active
  if (worker === null) throw new Error('the browser started no worker')
  await new Promise<void>((resolve, reject) => {
    const look = (): void => {
      if (worker.state === 'activated') resolve()
      if (worker.state === 'redundant') reject(new Error('the worker could not be installed'))
    }
    worker.addEventListener('statechange', look)
    look()
  })
  return worker
}

async function verdictOf(worker: ServiceWorker): Promise<SiteVerdict> {
  const { port1, port2 } = new MessageChannel()
  const answered = new Promise<SiteVerdict>((resolve) => {
    port1.onmessage = ({ data }) => resolve(data as SiteVerdict)
  })
  const question: SiteQuestion = { kind: 'verify', path: location.pathname + location.search }
  worker.postMessage(question, [port2])
  return await answered
}

async function begin(): Promise<void> {
  if (!('serviceWorker' in navigator)) throw new Error('this browser has no service workers here: use https')
  const verdict = await verdictOf(await startedWorker())
  if (verdict.kind === 'failed') {
    const { step, message } = verdict
    say(`Not verified${step === undefined ? '' : `: ${step}`}. ${message}`)
    return
  }
  location.reload()
}

begin().catch((error: unknown) =>
  say(`Not verified: ${error instanceof Error ? error.message : String(error)}`),
)
