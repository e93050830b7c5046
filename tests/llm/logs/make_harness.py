"""Write the logs of lm-evaluation-harness that the tests read: `python make_harness.py`, with lm-eval.

Its tasks run as always, offline, on a stand-in for a model, which finds right options likely, and long ones unlikely.
"""

# ruff: noqa: T201, E501
import json
import os
import random
import tempfile
from pathlib import Path

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}

import lm_eval
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

HERE = Path(__file__).parent
QUESTIONS = 16
SAID = ["85%", "0.9", "8/10", "very likely", "**likely**", "I cannot say", "70 percent"]
COMMON = """
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
"""
TASKS = {
    "sums": """
output_type: multiple_choice
doc_to_text: "{{question}}"
doc_to_choice: "{{choices}}"
doc_to_target: right
metric_list: [{metric: acc}, {metric: acc_norm}]
""",
    "sums_by_text": """
output_type: multiple_choice
doc_to_text: "{{question}}"
doc_to_choice: "{{words}}"
doc_to_target: "{{words[right]}}"
metric_list: [{metric: acc}, {metric: acc_norm}]
""",
    "sums_written": """
output_type: generate_until
doc_to_text: "{{question}} End with a line 'Confidence: …'."
doc_to_target: "{{choices[right]}}"
generation_kwargs: {until: ["\\n\\n"]}
filter_list:
  - {name: first-number, filter: [{function: regex, regex_pattern: "(\\\\d+)"}, {function: take_first}]}
  - {name: last-number, filter: [{function: regex, regex_pattern: "(\\\\d+)", group_select: -1}, {function: take_first}]}
metric_list: [{metric: exact_match}]
""",
}


class StandIn(LM):
    """A model that adds, and forgets."""

    def __init__(self):
        super().__init__()
        self.rng = random.Random(0)

    def loglikelihood(self, requests, disable_tqdm=False):
        return [(self._log(*request.args), False) for request in requests]

    def _log(self, question, option):
        a, b = (int(part) for part in question.removesuffix(" = ?").split(" + "))
        right = "".join(c for c in option if c.isdigit()) == str(a + b)
        return -0.3 * len(option) + 3 * right + 2 * self.rng.gauss(0, 1) - 12

    def generate_until(self, requests, disable_tqdm=False):
        return [f"{self.rng.randrange(3) + 7}\nConfidence (0-100 %): {self.rng.choice(SAID)}" for _ in requests]

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        raise NotImplementedError


def questions(rng):
    for i in range(QUESTIONS):
        a, b = rng.randrange(2, 9), rng.randrange(2, 9)
        wrong = [a + b + shift for shift in (1, 10, -1)[: 1 + i % 3]]
        choices = [str(a + b), *(f"{w}, or maybe a little more" if i % 4 == 0 else str(w) for w in wrong)]
        rng.shuffle(choices)
        words = [f"{c} apples" for c in choices]
        yield {"question": f"{a} + {b} = ?", "choices": choices, "words": words, "right": choices.index(str(a + b))}


def main():
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "sums.jsonl")
        data.write_text("".join(json.dumps(one) + "\n" for one in questions(random.Random(1))))
        for name, text in TASKS.items():
            Path(folder, f"{name}.yaml").write_text(f"task: {name}{COMMON.format(data=data)}{text}")
        manager = TaskManager(include_path=folder, include_defaults=False)
        found = lm_eval.simple_evaluate(
            StandIn(), tasks=list(TASKS), task_manager=manager, log_samples=True, bootstrap_iters=0
        )
        tracker = EvaluationTracker(output_path=folder)
        samples = found.pop("samples")
        tracker.save_results_aggregated(found, samples)
        for name in TASKS:
            tracker.save_results_samples(name, samples[name])
            (log,) = Path(folder).rglob(f"samples_{name}_20*.jsonl")
            (HERE / f"harness_{name}.jsonl").write_bytes(log.read_bytes())
        print({name: {k: v for k, v in found["results"][name].items() if "," in k} for name in TASKS})


if __name__ == "__main__":
    main()
