#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Gives what `weft export` makes to the code of those who read it.

    owners.py batch|cluster|pods WEFT JOBFILE...

batch    botocore checks the parameters, and moto takes the definition and gives it back
cluster  ParallelCluster's own schema loads the configuration
pods     the Trainer's models take runtime and job without losing a field, and the schemas of
         Kubernetes take all pods

Each judge is first shown something wrong, which it must refuse. Prints what is wrong; exit code 1
then.
"""

import json
import os
import subprocess
import sys

os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
os.environ.setdefault("AWS_ACCESS_KEY_ID", "none")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "none")
IMAGE = "example.org/mpi:1"
CLUSTER = ("parallelcluster", "--instance-type", "c5n.18xlarge", "--subnet",
    "subnet-0123456789abcdef0", "--region", "us-east-1")


def exported(job, *words):
    return subprocess.run([WEFT, "export", *words, job], check=True, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True).stdout


def mounts_of(job):
    import yaml
    return yaml.safe_load(open(job)).get("mounts", [])


def mounting(job, target):
    """The option of a job that mounts buckets, which no target leaves out unasked."""
    if not mounts_of(job):
        return ()
    asked = subprocess.run([WEFT, "export", target, "--image", IMAGE, job], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert asked.returncode == 2 and "--privileged" in asked.stderr, asked
    assert "--mount" not in exported(job, target, "--image", IMAGE, "--no-mounts")
    return ("--privileged",)


def is_mounted(job, command_holder, containers):
    """Each bucket is mounted by the command, and the containers may do that, and only then."""
    text = json.dumps(command_holder)
    mounts = mounts_of(job)
    for one in mounts:
        word = f"{one['source']}:{one['target']}" + (":ro" if one.get("read_only") else "")
        word += ":shared-writes" if one.get("shared_writes") else ""
        assert json.dumps(["--mount", word])[1:-1] in text, (word, text)
    for one in containers:
        may = one.get("privileged", one.get("securityContext", {}).get("privileged", False))
        assert may == bool(mounts), one


def containers_of(definition):
    if "containerProperties" in definition:
        return [definition["containerProperties"]]
    return [one["container"] for one in definition["nodeProperties"]["nodeRangeProperties"]]


def refused(what, judge, *wrong):
    """A judge that takes anything is none."""
    try:
        judge(*wrong)
    except Exception:
        return
    raise AssertionError(f"{what} took {wrong}")


def batch(jobs):
    import boto3
    import botocore.session
    from botocore.validate import ParamValidator
    from moto import mock_aws
    from moto.batch.models import batch_backends

    model = botocore.session.get_session().get_service_model("batch")

    def judge(operation, parameters):
        shape = model.operation_model(operation).input_shape
        report = ParamValidator().validate(parameters, shape)
        assert not report.has_errors(), report.generate_report()

    refused("botocore", judge, "RegisterJobDefinition", {"jobDefinitionName": "a",
        "type": "container",
        "containerProperties": {"linuxParameters": {"sharedMemorySize": "4g"}}})

    @mock_aws
    def round_trip(definition):
        client = boto3.client("batch")
        made = client.register_job_definition(**definition)
        found = client.describe_job_definitions(jobDefinitions=[made["jobDefinitionArn"]])
        (found,) = found["jobDefinitions"]
        if "nodeProperties" in definition:
            # moto keeps them, and does not show them.
            kept = batch_backends["123456789012"]["us-east-1"]._job_definitions
            kept = kept[made["jobDefinitionArn"]]
            found = {**definition, "nodeProperties": kept.node_properties, "type": kept.type,
                "retryStrategy": kept.retry_strategy, "timeout": kept.timeout}
            found = {name: one for name, one in found.items() if name in definition}
        contains(found, definition)

    def contains(found, wanted, path=""):
        """moto adds fields that it has defaults for."""
        if isinstance(wanted, dict):
            for name, one in wanted.items():
                assert name in found, f"{path}.{name} is lost: {found}"
                contains(found[name], one, f"{path}.{name}")
        elif isinstance(wanted, list):
            assert len(found) >= len(wanted), (path, found)
            for index, one in enumerate(wanted):
                contains(found[index], one, f"{path}[{index}]")
        else:
            assert found == wanted, (path, found, wanted)

    for job in jobs:
        told = mounting(job, "batch")
        for words in (told, ("--efa", *told), ("--vcpus", "8", "--memory", "64g", *told)):
            definition = json.loads(exported(job, "batch", "--image", IMAGE, *words))
            judge("RegisterJobDefinition", definition)
            round_trip(definition)
            is_mounted(job, definition, containers_of(definition))
        try:
            submission = exported(job, "batch-submit", "--job-queue", "q")
        except subprocess.CalledProcessError:
            continue  # an array of jobs of several nodes
        judge("SubmitJob", json.loads(submission))


def cluster(jobs):
    import yaml
    from pcluster.schemas.cluster_schema import ClusterSchema

    def judge(text):
        return ClusterSchema(cluster_name="weft").load(yaml.safe_load(text))

    install = ("--efa", "--install-script", "s3://abc/install-weft.sh", "--archive",
        "s3://abc/weft.tar.gz", "--key-name", "mine")
    good = exported(jobs[0], *CLUSTER, *install)
    assert "Efa" in good
    refused("ParallelCluster", judge, good.replace("Enabled", "Enabld"))
    for job in jobs:
        for words in ((), install):
            config = judge(exported(job, *CLUSTER, *words))
            (queue,) = config.scheduling.queues
            (resource,) = queue.compute_resources
            assert resource.efa.enabled == bool(words), resource.efa
            group = queue.networking.placement_group
            assert bool(group and group.enabled) == (resource.max_count > 1), (job, group)
            if words:
                (action,) = queue.custom_actions.on_node_configured
                assert action.script == words[2] and action.args[0] == words[4], action
                folders = [word for name, word in zip(action.args, action.args[1:])
                    if name == "--mount-folder"]
                assert folders == [one["target"] for one in mounts_of(job)], action.args
            access = queue.iam.s3_access or [] if queue.iam else []
            assert [(one.bucket_name, one.enable_write_access) for one in access] == [
                (one["source"].split("/")[2], not one.get("read_only", False))
                for one in mounts_of(job)], access


def pods(jobs):
    import kubernetes_validate
    import yaml
    from kubeflow_trainer_api import models

    kinds = {"TrainJob": models.TrainerV1alpha1TrainJob,
        "TrainingRuntime": models.TrainerV1alpha1TrainingRuntime}
    version = kubernetes_validate.latest_version()

    def judge_pod(spec):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
        kubernetes_validate.validate(pod, version, strict=True)

    def judge_object(document):
        taken = kinds[document["kind"]].from_dict(document).to_dict()
        assert taken == document, f"{taken}\nis not\n{document}"

    refused("kubernetes-validate", judge_pod, {"containers": [{"name": "a", "imag": "b"}]})
    refused("the Trainer", judge_object, {"kind": "TrainJob", "spec": {"trainer": {}}})
    refused("the Trainer", judge_object, {"kind": "TrainJob",
        "spec": {"runtimeRef": {"name": "a"}, "trainer": {"numNodez": 1}}})
    for job in jobs:
        assert mounting(job, "trainjob") == (told := mounting(job, "mpijob"))
        for words in (told, (*told, "--cpus", "4", "--memory", "16g", "--service-account", "s")):
            text = exported(job, "trainjob", "--image", IMAGE, *words)
            runtime, train_job = yaml.safe_load_all(text)
            judge_object(runtime)
            judge_object(train_job)
            assert train_job["spec"]["runtimeRef"]["name"] == runtime["metadata"]["name"]
            both = runtime["spec"]["template"]["spec"]["replicatedJobs"]
            for one in both:
                judge_pod(one["template"]["spec"]["template"]["spec"])
            node = both[0]["template"]["spec"]["template"]["spec"]
            assert node.get("serviceAccountName") == ("s" if "s" in words else None), node
            is_mounted(job, train_job, node["containers"])
            mpi_job = yaml.safe_load(exported(job, "mpijob", "--image", IMAGE, *words))
            replicas = mpi_job["spec"]["mpiReplicaSpecs"]
            assert set(replicas) == {"Launcher", "Worker"}
            for one in replicas.values():
                judge_pod(one["template"]["spec"])
            is_mounted(job, replicas["Launcher"],
                replicas["Worker"]["template"]["spec"]["containers"])


if __name__ == "__main__":
    which, WEFT, *files = sys.argv[1:]
    {"batch": batch, "cluster": cluster, "pods": pods}[which](files)
