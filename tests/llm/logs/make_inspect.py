"""Write the logs of inspect_ai that the tests read: `python make_inspect.py`, with inspect-ai.

A stand-in for a model answers sums of two numbers: it is right with some probability, and says so with too much
confidence. It runs offline. Events of the transcript, which nothing here reads, are taken out; all else is as
inspect_ai writes it.
"""

# ruff: noqa: T201
import math
import random
import tempfile
from pathlib import Path

from inspect_ai import Task
from inspect_ai import eval as run
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    Logprob,
    Logprobs,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.scorer import CORRECT, INCORRECT, NOANSWER, Score, Target, accuracy, choice, scorer
from inspect_ai.solver import TaskState, generate, multiple_choice

HERE = Path(__file__).parent
QUESTIONS, EPOCHS = 12, 2
USAGE = ModelUsage(input_tokens=20, output_tokens=10, total_tokens=30)  # counting them needs a network
SAID = ["85 %", "0.85", "8/10", "very likely", "likely", "unlikely", "about 70%", "95", "I cannot tell.", ""]


def tokens(text: str, answer: str, confidence: float, rng: random.Random) -> Logprobs:
    """Log-probabilities of the tokens of an answer: words, and the letter."""
    parts = [part for word in text.split(" ") for part in (word, " ")][:-1]
    chosen = len(parts) - 1 - parts[::-1].index(answer)
    logs = [math.log(confidence) if i == chosen else -rng.random() / 100 for i in range(len(parts))]
    return Logprobs(content=[Logprob(token=t, logprob=log) for t, log in zip(parts, logs, strict=True)])


def options(sums: tuple[int, int]) -> list[str]:
    """Two to five options, the first of which is the sum."""
    a, b = sums
    return [str(a + b + shift) for shift in (0, 1, 10, -1, 2)[: 2 + (a % 4)]]


def shuffled(i: int) -> Sample:
    rng = random.Random(i)
    sums = rng.randrange(10, 99), rng.randrange(10, 99)
    found = options(sums)
    rng.shuffle(found)
    target = "ABCDE"[found.index(str(sum(sums)))]
    return Sample(id=f"sum-{i}", input=f"{sums[0]} + {sums[1]} = ?", choices=found, target=target)


@scorer(metrics=[accuracy()])
def stated():
    """Right or wrong, and what the model said of its confidence."""

    async def score(state: TaskState, target: Target) -> Score:
        answer, _, said = state.output.completion.partition(" | ")
        value = NOANSWER if answer == "I will not answer." else CORRECT if answer == target.text else INCORRECT
        return Score(value=value, answer=answer, metadata={"confidence": said})

    return score


def main() -> None:
    rng = random.Random(0)
    samples = [shuffled(i) for i in range(QUESTIONS)]

    def chosen(messages, tools, tool_choice, config) -> ModelOutput:
        text = messages[-1].text
        sample = next(s for s in samples if str(s.input) in text)
        confidence = 0.3 + 0.69 * rng.random()
        right = rng.random() < 0.9 * confidence
        letters = "ABCDE"[: len(sample.choices or [])]
        answer = str(sample.target) if right else rng.choice([one for one in letters if one != sample.target])
        text = f"A hard sum. ANSWER: {answer}"
        return ModelOutput(
            model="mockllm",
            usage=USAGE,
            choices=[
                ChatCompletionChoice(
                    message=ChatMessageAssistant(content=text),
                    logprobs=tokens(text, answer, confidence, rng),
                )
            ],
        )

    def said(messages, tools, tool_choice, config) -> ModelOutput:
        sample = next(s for s in samples if str(s.input) == messages[-1].text)
        a, b = (int(part) for part in str(sample.input).removesuffix(" = ?").split(" + "))
        answer = str(a + b) if rng.random() < 0.6 else str(a + b + 1)
        if rng.random() < 0.1:
            answer = "I will not answer."
        output = ModelOutput.from_content("mockllm", f"{answer} | {rng.choice(SAID)}")
        output.usage = USAGE
        return output

    plain = [Sample(id=s.id, input=s.input, target=str(sum(map(int, str(s.input)[:-4].split(" + "))))) for s in samples]
    tasks = {
        "inspect_choice": (
            Task(dataset=samples, solver=multiple_choice(), scorer=choice(), name="choice"),
            chosen,
            EPOCHS,
        ),
        "inspect_stated": (Task(dataset=plain, solver=generate(), scorer=stated(), name="stated"), said, 1),
    }
    for name, (task, answers, epochs) in tasks.items():
        model = get_model("mockllm/model", custom_outputs=answers)
        (log,) = run(task, model=model, epochs=epochs, max_samples=1, display="none", log_dir=tempfile.mkdtemp())
        log = read_eval_log(log.location)
        for sample in log.samples or []:
            sample.events = []
        write_eval_log(log, str(HERE / f"{name}.{'eval' if epochs > 1 else 'json'}"))
        print(name, log.status, {s.name: {k: m.value for k, m in s.metrics.items()} for s in log.results.scores})


if __name__ == "__main__":
    main()
